import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKeyPair } from '../../support/key-pairs.ts';
import { haproxyVersions, runtimeCommand, waitFor } from '../../support/haproxy.ts';
import { startBed, type Bed } from './bed.ts';
import { NAMES, PATHS, REGEXES, SEED } from './values.ts';

const pair = await makeKeyPair(['emitters.example']);

describe.each(haproxyVersions())(
  `HAProxy $version reports what an emitter was given (P9), seed ${String(SEED)}`,
  ({ binary }) => {
    let bed: Bed;
    beforeAll(async () => {
      bed = await startBed(binary, pair);
    });
    afterAll(() => bed.stop());

    /** The answer about each value of an emitter, next to the value. */
    const askAll = async <T>(
      values: readonly string[] | undefined,
      ask: (index: number, value: string) => Promise<T>,
    ): Promise<[string, T][]> => {
      expect(values?.length).toBeGreaterThan(5);
      return Promise.all(
        (values ?? []).map(async (value, index): Promise<[string, T]> => [
          value,
          await ask(index, value),
        ]),
      );
    };

    const sameFor = async (
      values: readonly string[] | undefined,
      ask: (index: number, value: string) => Promise<string>,
    ): Promise<void> => {
      const answers = await askAll(values, ask);
      expect(answers.filter(([value, answer]) => answer !== value)).toEqual([]);
    };

    const body = async (path: string): Promise<string> => (await bed.get(path)).body;
    const param = (value: string): string => `?v=${encodeURIComponent(value)}`;
    const fitsRequest = (value: string): boolean => Buffer.byteLength(value) < 2000;

    test.each(['quoted', 'token', 'logFormat'])('%s: the body of an answer', async (name) => {
      await sameFor(bed.values[name], (index) => body(`/${name}/${String(index)}`));
    });

    test('header: the header of an answer, and the one that a server gets', async () => {
      const values = bed.values['header'];
      await sameFor(values, async (index) => (await bed.get(`/header/${String(index)}`)).header);
      await sameFor(values, (index) => body(`/sent/${String(index)}`));
    });

    test('logFormat: a log line', async () => {
      const wanted = bed.lines.map(
        (line, number) =>
          `${String(number)}:${line.map((value, index) => `${value}<${String(index)}>`).join('')}`,
      );
      await Promise.all(bed.lines.map((_, number) => bed.get('/', `log-${String(number)}.sock`)));
      await waitFor(() => Promise.resolve(bed.logged().length >= wanted.length), {
        what: 'the log',
      });
      expect(
        bed
          .logged()
          .map((line) => line.replace(/\n$/, ''))
          .sort(),
      ).toEqual([...wanted].sort());
    });

    const statuses = async (
      name: string,
      values: readonly string[],
      asked: (value: string, index: number) => string,
    ): Promise<number[]> => {
      const answers = values.map((value, index) =>
        fitsRequest(value)
          ? [bed.get(`/${name}/${String(index)}${param(asked(value, index))}`)]
          : [],
      );
      return [...new Set((await Promise.all(answers.flat())).map(({ status }) => status))];
    };

    test.each(['aclPattern', 'literal'])('%s: matches the value and nothing else', async (name) => {
      const values = name === 'literal' ? bed.matched : (bed.values[name] ?? []);
      expect(values.length).toBeGreaterThan(50);
      expect(await statuses(name, values, (value) => value)).toEqual([200]);
      const others = await Promise.all(
        values
          .filter(fitsRequest)
          .map((value, index) => bed.get(`/${name}/${String(index)}${param(`${value}x`)}`)),
      );
      expect(others.filter(({ body: answer }) => answer !== '')).toEqual([]);
    });

    test('regex: matches what the expression means', async () => {
      const subjects = REGEXES.map(([, yes]) => yes);
      expect(await statuses('regex', subjects, (yes) => yes)).toEqual([200]);
      for (const [index, [, , no]] of REGEXES.entries()) {
        const answer = await bed.get(`/regex/${String(index)}${param(no)}`);
        expect([no, answer.header]).toEqual([no, '']);
      }
    });

    test('mapKey and mapValue: show map, and look-ups', async () => {
      const shown = (await runtimeCommand(bed.haproxy.workerSocket, 'show map maps/all.map'))
        .split('\n')
        .map((line) => line.replace(/^0x[0-9a-f]+ /, ''));
      const keys = bed.values['mapKey'] ?? [];
      const values = bed.values['mapValue'] ?? [];
      const wanted = [
        ...keys.map((key, index) => `${key} key-${String(index)}`),
        ...values.map((value, index) => `value-${String(index)} ${value}`),
      ];
      expect(shown.sort()).toEqual(wanted.sort());
      await sameFor(values, (index) => body(`/map${param(`value-${String(index)}`)}`));
      const answers = await askAll(keys.filter(fitsRequest), (_, key) => body(`/map${param(key)}`));
      expect(
        answers.filter(([key, answer]) => answer !== `key-${String(keys.indexOf(key))}`),
      ).toEqual([]);
    });

    test('comment: the rule before it and the line after it are read', async () => {
      const answers = await askAll(bed.values['comment'], (index) =>
        bed.get(`/comment/${String(index)}`),
      );
      expect(new Set(answers.map(([, { status }]) => status))).toEqual(new Set([200]));
    });

    test('token: names of backends and servers', async () => {
      const stat = await runtimeCommand(bed.haproxy.workerSocket, 'show servers state');
      const rows = stat.split('\n').map((row) => row.split(' '));
      const found = rows.flatMap(([, backend = '', , name = '']) =>
        backend === name ? [name] : [],
      );
      expect(found.filter((name) => name !== '' && name !== 'echo').sort()).toEqual(
        [...NAMES].sort(),
      );
    });

    test('path: the file', async () => {
      const answers = await askAll(PATHS, (index) => body(`/path/${String(index)}`));
      expect(answers.map(([, answer]) => answer)).toEqual(
        PATHS.map((_, index) => `content ${String(index)}`),
      );
    });

    test('text: the content of a file', async () => {
      expect(await body('/texts')).toBe(bed.texts);
    });

    test('pem: the certificate', async () => {
      const shown = await runtimeCommand(bed.haproxy.workerSocket, 'show ssl cert certs/own.pem');
      const { fingerprint } = new X509Certificate(pair.certificate);
      expect(shown).toContain(`SHA1 FingerPrint: ${fingerprint.replaceAll(':', '')}`);
    });
  },
);
