# syntax=docker/dockerfile:1
# The controller: docker buildx build --platform linux/amd64,linux/arm64 -f images/controller.Dockerfile .
# What is in it stands in images/contents.json too, which the images of the tests are packed from; a test
# compares the two.

FROM --platform=$BUILDPLATFORM node:26-trixie-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY tools ./tools
COPY src ./src
COPY agent ./agent
RUN node tools/build.ts

FROM node:26-trixie-slim AS node

FROM haproxy:3.4-trixie AS haproxy

FROM debian:trixie-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends \
    libatomic1 liblua5.4-0 libpcre2-8-0 libssl3t64 libstdc++6 \
  && rm -rf /var/lib/apt/lists/*
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=haproxy /usr/local/sbin/haproxy /usr/local/sbin/haproxy
COPY --from=build /build/dist/haptic.js /opt/haptic/dist/haptic.js
COPY --from=build /build/dist/haptic.js.LEGAL.txt /opt/haptic/dist/haptic.js.LEGAL.txt
COPY --from=build /build/dist/vet.js /opt/haptic/dist/vet.js
COPY --from=build /build/dist/vet.js.LEGAL.txt /opt/haptic/dist/vet.js.LEGAL.txt
COPY libraries /opt/haptic/libraries
COPY LICENSE /opt/haptic/LICENSE
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/node", "--max-semi-space-size=4", "/opt/haptic/dist/haptic.js"]
