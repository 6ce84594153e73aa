import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkSpec } from '../../../src/render/config/spec.ts';
import { yamlDocuments } from '../../../src/streams/yaml-documents.ts';

/** A schema, as far as this test reads it. */
interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly enum?: readonly string[];
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
}

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly names: Readonly<Record<string, unknown>>;
    readonly versions: readonly {
      readonly name: string;
      readonly subresources: unknown;
      readonly additionalPrinterColumns: readonly { readonly name: string }[];
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

const FILE = fileURLToPath(
  new URL('../../../chart/crds/haproxytemplateconfigs.yaml', import.meta.url),
);

const definition = (): Definition => {
  const read = yamlDocuments(readFileSync(FILE, 'utf8'));
  if (!read.ok) throw new Error(read.error.reason);
  return read.documents[0] as Definition;
};

const version = () => {
  const [first] = definition().spec.versions;
  if (first === undefined) throw new Error('the definition has no version');
  return first;
};

const specSchema = (): Schema => version().schema.openAPIV3Schema.properties?.['spec'] ?? {};

/** A value below `spec`, wrapped into what leads to it. */
type Wrap = (value: unknown) => unknown;

/** Every mapping with fixed members, with its path and how to build a spec around it. */
function* mappings(
  schema: Schema,
  path = 'spec',
  wrap: Wrap = (value) => value,
): Generator<{ readonly path: string; readonly schema: Schema; readonly wrap: Wrap }> {
  if (schema.properties !== undefined) yield { path, schema, wrap };
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    yield* mappings(member, `${path}.${name}`, (value) => wrap({ [name]: value }));
  }
  if (schema.additionalProperties !== undefined) {
    yield* mappings(schema.additionalProperties, `${path}.*`, (value) => wrap({ any: value }));
  }
  if (schema.items !== undefined) {
    yield* mappings(schema.items, `${path}[]`, (value) => wrap([value]));
  }
}

const problemsOf = (spec: unknown): readonly string[] => {
  const problems: string[] = [];
  checkSpec(spec, 'user', (path, message, nextStep) => {
    problems.push(`${path} ${message} ${nextStep}`);
  });
  return problems;
};

/** What the controller says are the members of this mapping. */
const knownMembers = (wrap: Wrap): readonly string[] => {
  const [told = ''] = problemsOf(wrap({ '~~~~~~~~~~~~~~~~': 1 }));
  const [, names = ''] = /Use one of (.*)\.$/.exec(told) ?? [];
  return names.split(', ').sort();
};

describe('the definition of HAProxyTemplateConfig', () => {
  it('has the members that the controller knows, at every level', () => {
    const levels = [...mappings(specSchema())];
    expect(levels.map(({ path }) => path)).toContain('spec.validationTests.*.assertions[]');
    expect(
      levels.map(({ path, schema }) => [path, Object.keys(schema.properties ?? {}).sort()]),
    ).toStrictEqual(levels.map(({ path, wrap }) => [path, knownMembers(wrap)]));
  });

  it('keeps unknown members at every level, so that the controller can name them', () => {
    for (const { path, schema } of mappings(specSchema())) {
      expect([path, schema['x-kubernetes-preserve-unknown-fields']]).toStrictEqual([path, true]);
    }
  });

  it('has types that the controller takes', () => {
    const example = (schema: Schema): unknown => {
      if (schema.enum !== undefined) return schema.enum[0];
      if (schema.properties !== undefined) {
        return Object.fromEntries(
          Object.entries(schema.properties).map(([name, member]) => [name, example(member)]),
        );
      }
      if (schema.additionalProperties) return { any: example(schema.additionalProperties) };
      if (schema.items !== undefined) return [example(schema.items)];
      if (schema['x-kubernetes-int-or-string']) return '10s';
      const samples: Readonly<Record<string, unknown>> = {
        string: 'a',
        boolean: true,
        integer: 1,
        object: {},
      };
      return schema.type === undefined ? 'a=b' : samples[schema.type];
    };
    expect(problemsOf(example(specSchema()))).toStrictEqual([]);
  });

  it('has types at every level but where content is free, as structural schemas want', () => {
    const untyped: string[] = [];
    const visit = (schema: Schema, path: string): void => {
      const free =
        schema['x-kubernetes-preserve-unknown-fields'] ?? schema['x-kubernetes-int-or-string'];
      if (schema.type === undefined && free !== true) untyped.push(path);
      for (const [name, member] of Object.entries(schema.properties ?? {})) {
        visit(member, `${path}.${name}`);
      }
      if (schema.additionalProperties) visit(schema.additionalProperties, `${path}.*`);
      if (schema.items) visit(schema.items, `${path}[]`);
    };
    visit(version().schema.openAPIV3Schema, '');
    expect(untyped).toStrictEqual([]);
  });

  it('has a status of its own, the short name users know, and a column that says whether it is accepted', () => {
    const { metadata, spec } = definition();
    expect(metadata.name).toBe('haproxytemplateconfigs.haproxy-haptic.org');
    expect(spec.names).toMatchObject({ kind: 'HAProxyTemplateConfig', shortNames: ['htplcfg'] });
    const { name, subresources, additionalPrinterColumns } = version();
    expect({ name, subresources }).toStrictEqual({
      name: 'v1alpha1',
      subresources: { status: {} },
    });
    expect(additionalPrinterColumns.map((column) => column.name)).toStrictEqual([
      'Accepted',
      'Reason',
      'Age',
    ]);
  });
});
