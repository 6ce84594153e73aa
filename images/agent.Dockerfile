# syntax=docker/dockerfile:1
# The agent: docker buildx build --platform linux/amd64,linux/arm64 -f images/agent.Dockerfile .
# What is in it stands in images/contents.json too, which the images of the tests are packed from; a test
# compares the two. The user is the one that HAProxy runs as in the pod they share.

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

FROM debian:trixie-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends libatomic1 libstdc++6 \
  && rm -rf /var/lib/apt/lists/*
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=build /build/dist/agent.js /opt/haptic/dist/agent.js
COPY LICENSE /opt/haptic/LICENSE
USER 99:99
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/node", "/opt/haptic/dist/agent.js"]
