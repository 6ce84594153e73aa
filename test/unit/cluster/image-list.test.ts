import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  imageList,
  type ImageContents,
  type ImageFile,
} from '../../cluster/harness/image-files.ts';

const read = (path: string): string =>
  readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

const list = imageList();
const built = Object.entries(list).flatMap(([key, contents]) => {
  return contents.dockerfile === undefined ? [] : [{ key, contents, file: contents.dockerfile }];
});

/** The instructions of the last stage, which is what the image consists of. */
function lastStage(dockerfile: string): string[] {
  const lines = dockerfile.replaceAll('\\\n', '').split('\n');
  return lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')) + 1);
}

/** What a recipe copies, as the list says it: `from → to`. */
function copies(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const found = /^COPY (?:--from=(\S+) )?(\S+) (\S+)$/.exec(line);
    if (found === null) return [];
    const [, stage, source = '', to = ''] = found;
    const isProgram = stage === 'node' || stage === 'haproxy';
    return [`${isProgram ? stage : source.replace(/^\/build\//, '')} → ${to}`];
  });
}

function listed(files: readonly ImageFile[]): string[] {
  return files.map((file) => {
    const from = 'program' in file ? file.program.replace(/-[\d.]+$/, '') : file.from;
    return `${from} → ${file.to}`;
  });
}

function instruction(lines: readonly string[], name: string): string | undefined {
  return lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
}

describe('images/contents.json', () => {
  test.each(built)('holds the same files as $file', ({ contents, file }) => {
    expect(copies(lastStage(read(file)))).toEqual(listed(contents.files));
  });

  test.each(built)('starts the same program as $file, as the same user', ({ contents, file }) => {
    const lines = lastStage(read(file));
    expect({
      user: instruction(lines, 'USER'),
      stopSignal: instruction(lines, 'STOPSIGNAL'),
      entrypoint: JSON.parse(instruction(lines, 'ENTRYPOINT') ?? '') as unknown,
    }).toEqual({
      user: contents.user,
      stopSignal: contents.stopSignal,
      entrypoint: contents.entrypoint,
    });
  });

  test('has the branch of HAProxy that the recipe of the controller takes', () => {
    const branch = /^FROM haproxy:(\S+)-trixie AS haproxy$/m.exec(
      read('images/controller.Dockerfile'),
    )?.[1];
    expect(list['controller']?.files).toContainEqual({
      program: `haproxy-${branch}`,
      to: '/usr/local/sbin/haproxy',
    });
  });

  test('puts every bundle that the build makes into an image', () => {
    const bundles = [...read('tools/build.ts').matchAll(/'(dist\/[^']+)'/g)].map(
      ([, path]) => path,
    );
    const packed = Object.values(list).flatMap(({ files }: ImageContents) =>
      files.flatMap((file) => ('from' in file ? file.from : [])),
    );
    expect(bundles.length).toBeGreaterThan(1);
    expect(packed).toEqual(expect.arrayContaining(bundles));
  });

  test('runs nothing as root, and names no image by a tag that moves', () => {
    for (const { name, user } of Object.values(list)) {
      expect(Number(user.split(':')[0]), name).toBeGreaterThan(0);
      expect(name).not.toMatch(/:latest$/);
    }
  });
});
