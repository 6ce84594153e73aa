/** Grammars of names that come from the API: anchored allow-lists; nothing else gets near a configuration. */

const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const PORT_NAME = /^(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*$/;
const IPV4_LOOK = /^[0-9.]+$/;
const SUBDOMAIN_LENGTH = 253;

/** Name of a namespace or Service (RFC 1123 label). */
export const isLabel = (name: string): boolean => LABEL.test(name);

/** Name of most objects (RFC 1123 subdomain): labels with dots, at most 253 characters. */
export const isSubdomain = (name: string): boolean =>
  name.length <= SUBDOMAIN_LENGTH && name.split('.').every(isLabel);

/** Name of a port (IANA service name): at most 15 characters, at least one letter. */
export const isPortName = (name: string): boolean => PORT_NAME.test(name);

/** TCP port. */
export const isPortNumber = (port: unknown): port is number =>
  typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65535;

/** Every host that nothing else claims. */
export const ANY_HOST = '*';

/** The host in lower case, or undefined when it is neither a DNS name nor `*.` before one. */
export const readHost = (host: string): string | undefined => {
  const name = host.toLowerCase();
  const suffix = name.startsWith('*.') ? name.slice(2) : name;
  // toLowerCase maps some characters beyond ASCII into it (the Kelvin sign to k), which no request can be meant by.
  if (name.length !== host.length || !/^[\x20-\x7e]*$/.test(host)) return undefined;
  return isSubdomain(suffix) && !IPV4_LOOK.test(suffix) && name.length <= SUBDOMAIN_LENGTH
    ? name
    : undefined;
};

/** Whether a certificate or TLS entry for `pattern` covers `host`: equal, or a wildcard for its first label. */
export const coversHost = (pattern: string, host: string): boolean =>
  pattern === host || (host.includes('.') && pattern === `*${host.slice(host.indexOf('.'))}`);
