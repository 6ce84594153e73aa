import type { CrtListEntry } from './protocol.ts';

/** A line of a certificate list as it stands in its file, without its end: certificate, options in brackets, server names. */
export const crtListLine = ({ certificate, options, filters }: CrtListEntry): string =>
  [certificate, ...(options.length === 0 ? [] : [`[${options.join(' ')}]`]), ...filters].join(' ');
