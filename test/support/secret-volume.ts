import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/** The three files of a Secret with credentials. */
export interface SecretFiles {
  readonly 'tls.crt': string;
  readonly 'tls.key': string;
  readonly 'ca.crt': string;
}

/**
 * Puts the files into the directory as kubelet does: each a link through `..data`, which is replaced as a whole. Called
 * again it replaces them.
 */
export function projectSecret(dir: string, files: SecretFiles): void {
  mkdirSync(dir, { recursive: true });
  const version = mkdtempSync(join(dir, '..version-'));
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(version, name), String(text));
  const link = join(dir, '..data_tmp');
  rmSync(link, { force: true });
  symlinkSync(version, link);
  renameSync(link, join(dir, '..data'));
  for (const name of Object.keys(files)) {
    if (!existsSync(join(dir, name))) symlinkSync(join('..data', name), join(dir, name));
  }
}
