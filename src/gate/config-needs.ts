/** What a configuration expects of the machine that checks it, beside its own files. */
export interface ConfigNeeds {
  /** The pods' base directory, as `default-path origin` names it. */
  readonly baseDir: string | undefined;
  /** Files of the system that it cannot be judged without. */
  readonly systemFiles: readonly string[];
}

export const NO_NEEDS: ConfigNeeds = { baseDir: undefined, systemFiles: [] };

const ORIGIN = /^([ \t]*default-path[ \t]+origin[ \t]+)("[^"\n]*"|'[^'\n]*'|[^\s#]+)/m;

/** `user` and `group` of the process, or of a socket: their ids are looked up while HAProxy reads the file. */
const ACCOUNTS =
  /^[ \t]*(?:(?:user|group)[ \t]+[^\s#]+[ \t]*(?:#.*)?$|(?:stats[ \t]+socket|bind)[ \t].*[ \t](?:user|group)[ \t])/m;
const RESOLV_CONF = /^[ \t]*parse-resolv-conf\b/m;

/** Reads the needs off a configuration; the only three things that are ever looked for in HAProxy's own text. */
export const needsOf = (config: string): ConfigNeeds => ({
  baseDir: ORIGIN.exec(config)?.[2]?.replaceAll(/^["']|["']$/g, ''),
  systemFiles: [
    ...(ACCOUNTS.test(config) ? ['/etc/passwd', '/etc/group'] : []),
    ...(RESOLV_CONF.test(config) ? ['/etc/resolv.conf'] : []),
  ],
});

/** The configuration with its relative paths leading into another directory; every other byte stays. */
export const withOrigin = (config: string, directory: string): string =>
  config.replace(ORIGIN, (_whole, directive: string) => `${directive}${directory}`);
