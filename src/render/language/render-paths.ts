import { path as pathEmitter } from './emitters.ts';
import { TemplateFailure, nearest } from './failure.ts';
import type { DataplaneSettings } from '../render.ts';

export type PathType = 'map' | 'cert' | 'crt-list' | 'file';

const DIRECTORIES: Readonly<Record<PathType, (settings: DataplaneSettings) => string>> = {
  map: ({ mapsDir }) => mapsDir,
  cert: ({ sslCertsDir }) => sslCertsDir,
  'crt-list': ({ sslCertsDir }) => sslCertsDir,
  file: ({ generalStorageDir }) => generalStorageDir,
};

/**
 * Path of a file below the base directory; certificates get the ending `.pem`.
 *
 * @throws TemplateFailure for an unknown type and for a name that cannot be a file name
 */
export const filePath = (settings: DataplaneSettings, type: string, name: string): string => {
  if (!isPathType(type)) {
    const hint = nearest(type, Object.keys(DIRECTORIES));
    throw new TemplateFailure(`there is no type of file "${type}"${hint}`, {
      nextStep: 'Use "map", "cert", "crt-list" or "file".',
    });
  }
  const ending = type === 'cert' && !name.endsWith('.pem') ? '.pem' : '';
  const emitted = pathEmitter(`${DIRECTORIES[type](settings)}/${name}${ending}`);
  if (emitted.ok && !name.includes('/')) return emitted.text;
  const reason = emitted.ok ? 'it holds a slash' : emitted.reason;
  throw new TemplateFailure(`the name cannot be a file name: ${reason}`, {
    nextStep: 'Name files with letters, digits and _ . + = @ ~ -.',
    reason: 'ValueRefused',
  });
};

const isPathType = (type: string): type is PathType => Object.hasOwn(DIRECTORIES, type);
