import { describe, expect, it } from 'vitest';
import {
  fieldPath,
  fieldText,
  fieldValue,
  parseFieldPath,
  withoutField,
} from '../../../src/snapshot/field-path.ts';

describe('parseFieldPath', () => {
  it('divides at dots that are not escaped', () => {
    expect(parseFieldPath('metadata.labels.kubernetes\\.io/service-name')).toStrictEqual([
      'metadata',
      'labels',
      'kubernetes.io/service-name',
    ]);
    expect(parseFieldPath('a\\\\b.c')).toStrictEqual(['a\\b', 'c']);
  });

  it.each(['', '.', 'a.', '.a', 'a..b', 'a\\', 'a\\b'])('refuses %j', (path) => {
    expect(parseFieldPath(path)).toBeUndefined();
    expect(() => fieldPath(path)).toThrow(RangeError);
  });
});

describe('fieldValue', () => {
  it('sees own members only', () => {
    const object = { spec: { list: ['x'] } };
    expect(fieldValue(object, ['spec', 'list', '0'])).toBe('x');
    for (const path of ['constructor', '__proto__', 'toString', 'spec.list.map', 'a.b']) {
      expect(fieldValue(object, fieldPath(path))).toBeUndefined();
    }
  });

  it('finds own members whatever they are called', () => {
    const object: unknown = JSON.parse('{"__proto__":{"constructor":"mine"}}');
    expect(fieldValue(object, ['__proto__', 'constructor'])).toBe('mine');
  });

  it('prints numbers and booleans as keys, and nothing else', () => {
    const object = { port: 80, on: true, none: null, list: [1] };
    expect(['port', 'on', 'none', 'list'].map((name) => fieldText(object, [name]))).toStrictEqual([
      '80',
      'true',
      undefined,
      undefined,
    ]);
  });
});

describe('withoutField', () => {
  it('copies only what is on the way', () => {
    const object = { metadata: { managedFields: [1], labels: { a: 'b' } }, spec: {} };
    const reduced = withoutField(object, ['metadata', 'managedFields']);
    expect(reduced).toStrictEqual({ metadata: { labels: { a: 'b' } }, spec: {} });
    expect(reduced.spec).toBe(object.spec);
    expect(object.metadata.managedFields).toStrictEqual([1]);
  });

  it('returns the same object when nothing is dropped', () => {
    const object = { metadata: { name: 'a' } };
    expect(withoutField(object, ['metadata', 'labels', 'x'])).toBe(object);
    expect(withoutField(object, ['metadata', 'constructor'])).toBe(object);
  });

  it('keeps members called __proto__ plain data', () => {
    const object = JSON.parse('{"a":1,"__proto__":{"polluted":true}}') as { a: number };
    const reduced = withoutField(object, ['a']);
    expect(Object.getPrototypeOf(reduced)).toBe(Object.prototype);
    expect(JSON.stringify(reduced)).toBe('{"__proto__":{"polluted":true}}');
  });
});
