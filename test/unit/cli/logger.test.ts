import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { createLogger, writeLine } from '../../../src/cli/logger.ts';

const captured = (): { readonly lines: string[]; readonly stream: Writable } => {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  return { lines, stream };
};

it.each([
  { token: 's3cret' },
  { pem: 's3cret' },
  { object: { data: { password: 's3cret' } } },
  { a: { b: { key: 's3cret' } } },
  { request: { headers: { authorization: 's3cret' } } },
])('R8: cuts secrets out of %j', (fields) => {
  const { lines, stream } = captured();
  writeLine(createLogger('info', false, stream), { level: 'info', message: 'm', fields });
  expect(lines.join('')).toContain('[redacted]');
  expect(lines.join('')).not.toContain('s3cret');
});

it('writes one JSON line per event', () => {
  const { lines, stream } = captured();
  writeLine(createLogger('info', false, stream), {
    level: 'warn',
    message: 'hello',
    fields: { planId: 'x' },
  });
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 40, msg: 'hello', planId: 'x' });
});

it('writes one readable line per event for a terminal', () => {
  const { lines, stream } = captured();
  writeLine(createLogger('info', true, stream), {
    level: 'info',
    message: 'hello',
    fields: { planId: 'x' },
  });
  expect(lines.join('')).toMatch(/^\[?\d\d:\d\d:\d\d.*INFO.*hello\n$/s);
});
