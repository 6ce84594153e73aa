import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { lineAsText, objectAsText } from '../../../src/cli/explain-text.ts';
import { Contributors } from '../../../src/render/explain-contributors.ts';
import { explainLine, type ExplainSources } from '../../../src/render/explain-line.ts';
import { explainObject } from '../../../src/render/explain-object.ts';
import type { Render } from '../../../src/render/render.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import { yamlDocuments } from '../../../src/streams/yaml-documents.ts';
import { makeKeyPair } from '../../support/key-pairs.ts';
import { snapshotOf, tlsSecret } from '../../support/objects.ts';
import { libraryEngine, renderAll, textsOf } from '../../support/rendered.ts';

/** Run with `UPDATE_GOLDEN=1` to rewrite what is expected; then read the difference. */
const UPDATE = process.env['UPDATE_GOLDEN'] === '1';
const HERE = import.meta.dirname;
const CLASSES = {
  ...{ name: 'haptic', controller: 'haproxy-haptic.org/controller', withoutObject: true },
};

let render: Render;
let sources: ExplainSources;
let key = '';

beforeAll(async () => {
  const read = yamlDocuments(readFileSync(join(HERE, 'shop.yaml'), 'utf8'));
  if (!read.ok) throw new Error(read.error.reason);
  const pair = await makeKeyPair(['shop.example.com']);
  ({ key } = pair);
  const secret = tlsSecret('tls', { 'tls.crt': pair.certificate, 'tls.key': key });
  const inShop = { ...secret, metadata: { ...secret.metadata, namespace: 'shop' } };
  const documents = read.documents as KubeObject[];
  const isConfig = ({ kind }: KubeObject): boolean => kind === 'HAProxyTemplateConfig';
  const config = documents.find(isConfig);
  if (config === undefined) throw new Error('shop.yaml has no configuration');
  const objects = [...documents.filter((one) => !isConfig(one)), inShop];
  const defaultPem = `${pair.certificate.trim()}\n${key.trim()}\n`;
  render = renderAll(await libraryEngine({ config, defaultPem }), snapshotOf(objects));
  sources = { render, contributors: new Contributors(render.snapshot, CLASSES) };
});

const expectGolden = (name: string, text: string): void => {
  const path = join(HERE, 'expected', `${name}.txt`);
  if (UPDATE) writeFileSync(path, text);
  expect(existsSync(path)).toBe(true);
  expect(text).toBe(readFileSync(path, 'utf8'));
};

/** Line numbers in the configuration, and lengths of keys, are not what this is about. */
const withoutNumbers = (text: string): string =>
  text
    .replaceAll(/haproxy\.cfg:\d+(?:-\d+)?/g, 'haproxy.cfg:N')
    .replaceAll(/pem:1-\d+/g, 'pem:1-N');

const line = (file: string, number: number): string => {
  const explained = explainLine(sources, { file, line: number });
  return explained.ok ? lineAsText(explained.explanation) : explained.message;
};

const object = (words: string): string => {
  const explained = explainObject(sources, words, render.problems);
  return explained.ok ? objectAsText(explained.explanation) : explained.message;
};

describe('an explanation of a line', () => {
  test.each([
    ['line-of-backend', /^backend shop_web_80 from haptic-route$/],
    ['line-of-snippet', /^ {4}# team shop$/],
    ['line-of-server', /server \S+ 10\.0\.0\.1:8080/],
    ['line-of-server-ipv6', /server \S+ \[fd00::2\]:8080/],
    ['line-of-frontend', /http-request set-header X-Forwarded-Proto https/],
    ['line-of-profile', /^defaults haptic-route$/],
  ])('names template lines and objects: %s', (name, wanted) => {
    const lines = (textsOf(render)['haproxy.cfg'] ?? '').split('\n');
    const index = lines.findIndex((one) => wanted.test(one));
    expect(index).toBeGreaterThan(0);
    expectGolden(name, withoutNumbers(line('haproxy.cfg', index + 1)));
  });

  test.each([
    ['line-of-map-shared-host', 'maps/hosts.map', 1],
    ['line-of-map-one-ingress', 'maps/path-prefix.map', 2],
    ['line-of-crt-list', 'certs/https.crt-list', 2],
    ['line-of-certificate', 'certs/shop_tls.pem', 3],
    ['line-of-default-certificate', 'certs/default.pem', 1],
    ['line-of-error-page', 'general/503.http', 1],
  ])('names template lines and objects: %s', (name, file, number) => {
    expectGolden(name, line(file, number));
  });

  test('says what there is when there is no such line or file', () => {
    expect(line('haproxy.cfg', 9_999)).toMatch(
      /^haproxy\.cfg has lines 1 to \d+, so there is no line 9999$/,
    );
    expect(line('maps/host.map', 1)).toMatch(
      /^there is no file maps\/host\.map; did you mean maps\/hosts\.map\? There are certs\//,
    );
    expect(line('maps/host-default.map', 1)).toBe(
      'maps/host-default.map is empty, so there is no line 1',
    );
  });

  test('covers every line of every file, with the text that is there', () => {
    const texts = textsOf(render);
    for (const [path, text] of Object.entries(texts)) {
      const lines = [...render.lines(path)].map((one) => `${one.text}\n`).join('');
      expect(lines).toBe(text === '' || text.endsWith('\n') ? text : `${text}\n`);
      for (const one of render.lines(path)) {
        if (one.text !== '') expect(one.printedBy, `${path}: ${one.text}`).not.toStrictEqual([]);
      }
    }
  });
});

describe('an explanation of an object', () => {
  test.each([
    ['object-ingress', 'Ingress/shop/front'],
    ['object-partly-ignored', 'ingress/shop/cart'],
    ['object-of-another-class', 'Ingress/shop/other'],
    ['object-class', 'IngressClass/nginx'],
    ['object-slice', 'EndpointSlice/shop/web-1'],
    ['object-secret', 'Secret/shop/tls'],
    ['object-not-referenced', 'Service/shop/forgotten'],
    ['object-slice-not-referenced', 'EndpointSlice/shop/forgotten-1'],
    ['object-secret-not-referenced', 'Secret/shop/unused'],
  ])('R18: says what it made, or why not: %s', (name, words) => {
    expectGolden(name, withoutNumbers(object(words)));
  });

  test('R18: tells why one is not there for templates: it is quarantined', () => {
    const gone = { apiVersion: 'v1', kind: 'Ingress', namespace: 'shop', name: 'gone', uid: 'u' };
    const problem: Problem = {
      ...{ severity: 'error', reason: 'Quarantined', object: gone },
      ...{ message: 'Nothing of it is served.', nextStep: 'Correct it.' },
    };
    expect(explainObject(sources, 'Ingress/shop/gone', [problem])).toStrictEqual({
      ok: true,
      explanation: { object: gone, lines: [], problems: [problem], silence: undefined },
    });
  });

  test('says what there is when there is no such object', () => {
    expect(object('Ingress/shop/frnt')).toBe(
      'there is no object Ingress/shop/frnt; did you mean Ingress/shop/front?',
    );
    expect(object('Ingress/front')).toContain('did you mean Ingress/shop/front?');
    expect(object('nonsense')).toMatch(/KIND\/NAMESPACE\/NAME\. There are EndpointSlice, Ingress,/);
    expect(object('__proto__/constructor/toString')).toContain('no object __proto__/constructor');
    expect(object('a/b/c/d')).toContain('no object a/b/c/d');
  });

  test('never holds a certificate or its key', () => {
    const made = explainObject(sources, 'Secret/shop/tls', render.problems);
    const told = [JSON.stringify(made), object('Secret/shop/tls'), line('certs/shop_tls.pem', 2)];
    for (const text of told) {
      expect(text).not.toMatch(/PRIVATE KEY|BEGIN CERTIFICATE/);
      for (const part of key.split('\n').filter((one) => one.length > 20)) {
        expect(text).not.toContain(part);
      }
    }
  });
});
