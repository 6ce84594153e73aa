/** Names that every template sees: data, and the functions it can call. */
import type { DataplaneSettings } from '../render.ts';
import { leaf } from '../../cells/chunk.ts';
import { declareBackend, declareProfile, declareServer } from './declare-backend.ts';
import { declareEvent } from './declare-event.ts';
import { mapKey, mapValue, pem, type Emitter } from './emitters.ts';
import { TemplateFailure, nearest } from './failure.ts';
import {
  booleanArgument,
  hostPattern,
  listArgument,
  membersOf,
  optionalString,
  refuseArgument,
  stringArgument,
  wordArgument,
} from './parameters.ts';
import { objectOf } from './object-of.ts';
import { filePath } from './render-paths.ts';
import { ROUTE_COLLECTIONS } from './route-collections.ts';
import { Scope, type Run } from './run.ts';
import { withContent } from './on-demand-reads.ts';
import type { WatchedResource } from '../../snapshot/watch.ts';
import type { TemplateConfig } from '../config/template-config.ts';
import { EMPTY_TEXT, Text, plain } from './text.ts';
import {
  Namespace,
  TemplateFunction,
  TrackedCollection,
  WatchedObjects,
  deepPlain,
  isRecord,
  type Arguments,
} from './values.ts';

const MAX_RANGE = 100_000;

type Call = (args: Arguments, run: Run) => unknown;

/** The scope above all templates. */
export const globalScope = (
  config: TemplateConfig,
  capabilities: Readonly<Record<string, string | number | boolean>>,
): Scope => {
  const scope = new Scope();
  const data = { capabilities, extraContext: config.extraContext, dataplane: config.dataplane };
  for (const [name, value] of Object.entries(data)) scope.bind(name, value);
  scope.bind('routes', routes());
  scope.bind('resources', resources(config.watched));
  for (const [name, call] of Object.entries(functions(config))) {
    scope.bind(name, new TemplateFunction(name, call));
  }
  return scope;
};

const routes = (): Namespace =>
  new Namespace(
    'routes',
    new Map(
      ROUTE_COLLECTIONS.map((name) => [name, (run: Run) => new TrackedCollection(name, run)]),
    ),
  );

const resources = (watched: readonly WatchedResource[]): Namespace =>
  new Namespace('resources', new Map(watched.map((one) => [one.name, () => resource(one)])));

const resource = ({ name, indexBy, store }: WatchedResource): Namespace => {
  const looks = (['get', 'fetch', 'list'] as const).map((type) => {
    const called = `resources.${name}.${type}`;
    const look = new TemplateFunction(called, ({ positional }, { cell }) => {
      const keys = positional.map((key) => stringArgument(key, `a key of ${called}()`));
      if (type === 'fetch' && keys.length > indexBy.length) {
        refuseArgument(
          `${called}()`,
          `takes at most ${indexBy.length} keys: ${indexBy.join(', ')}`,
        );
      }
      if (type === 'get' && keys.length !== 2)
        refuseArgument(`${called}()`, 'takes namespace and name');
      if (type === 'list' && keys.length !== 0) refuseArgument(`${called}()`, 'takes no arguments');
      const seen = cell.reads.read(cell.world.storeRead(name, { type, keys }));
      return store === 'full' ? seen : withContent(name, seen, cell);
    });
    return [type, () => look] as const;
  });
  // What is on demand is not there before somebody looks, so it cannot be gone over.
  const Objects = store === 'full' ? WatchedObjects : Namespace;
  return new Objects(`resources.${name}`, new Map(looks));
};

const functions = (config: TemplateConfig): Readonly<Record<string, Call>> => ({
  backend: declareBackend,
  profile: declareProfile,
  server: declareServer,
  path: ({ positional: [name, type] }) => {
    const [bare, kind] = [stringArgument(name, 'the name'), stringArgument(type, 'the type')];
    if (kind === 'map') knownMap(config, bare);
    return new Text(filePath(config.dataplane, kind, bare));
  },
  map_entry: declareEntry(config),
  file: declareFile(config.dataplane),
  certificate: declareCertificate(config.dataplane),
  crt_list: declareCertificateList(config.dataplane),
  status: declareStatus,
  event: declareEvent,
  range: makeRange,
  fail: ({ positional: [message] }) => {
    throw new TemplateFailure(stringArgument(message, 'the message of fail()'), {
      nextStep: 'The template refuses this; its message says why.',
      reason: 'TemplateFailed',
    });
  },
});

const knownMap = (config: TemplateConfig, name: string): string => {
  if (config.maps.has(name)) return name;
  throw new TemplateFailure(`there is no map "${name}"${nearest(name, config.maps.keys())}`, {
    nextStep: 'Declare it under spec.maps.',
  });
};

const declareEntry =
  (config: TemplateConfig): Call =>
  ({ positional: [key, value, map] }, { cell }) => {
    const name = optionalString(map, 'the map of map_entry()') ?? cell.map;
    if (name === undefined) return refuseArgument('map_entry()', 'needs the name of a map here');
    cell.effects.mapEntries.push({
      map: knownMap(config, name),
      key: wordArgument(numberAsText(key), 'the key of map_entry()', mapKey),
      value: wordArgument(numberAsText(value), 'the value of map_entry()', mapValue),
      place: cell.callPlace,
    });
    return EMPTY_TEXT;
  };

const numberAsText = (value: unknown): unknown =>
  typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;

const declareFile =
  (dataplane: DataplaneSettings): Call =>
  ({ positional: [name, content, options], named }, { cell }) => {
    const members = membersOf(options ?? Object.fromEntries(named), 'the options of file()', [
      'reloadOnPush',
    ]);
    cell.effects.files.push({
      path: filePath(dataplane, 'file', stringArgument(name, 'the name of file()')),
      kind: 'general',
      content: leaf(stringArgument(content, 'the content of file()')),
      reloadOnChange: booleanArgument(members['reloadOnPush'], 'reloadOnPush', false),
      place: cell.callPlace,
    });
    return EMPTY_TEXT;
  };

const declareCertificate =
  (dataplane: DataplaneSettings): Call =>
  ({ positional: [name, content] }, { cell }) => {
    const path = filePath(dataplane, 'cert', stringArgument(name, 'the name of certificate()'));
    const text = wordArgument(content, 'the content of certificate()', pem);
    cell.effects.files.push({
      ...{ path, kind: 'cert', content: leaf(text), reloadOnChange: true },
      place: cell.callPlace,
    });
    return EMPTY_TEXT;
  };

/** Options of one line of a certificate list, such as `alpn` or `h2,http/1.1`. */
const lineOption: Emitter = (value) =>
  /^[A-Za-z0-9_.:,/@+=*-]+$/.test(value)
    ? { ok: true, text: value }
    : { ok: false, reason: 'it is no plain word' };

const declareCertificateList =
  (dataplane: DataplaneSettings): Call =>
  ({ positional: [name, entries] }, { cell }) => {
    const list = filePath(dataplane, 'crt-list', stringArgument(name, 'the name of crt_list()'));
    for (const entry of listArgument(entries, 'the entries of crt_list()')) {
      const known = ['certificate', 'options', 'hosts'];
      const members = membersOf(entry, 'an entry of crt_list()', known);
      const words = (member: string, emitter: Emitter): string[] =>
        listArgument(members[member], `${member} of crt_list()`).map((word) =>
          wordArgument(word, `one of the ${member} of crt_list()`, emitter),
        );
      const options = words('options', lineOption);
      const certificate = stringArgument(members['certificate'], 'the certificate of crt_list()');
      const line = [
        filePath(dataplane, 'cert', certificate),
        ...(options.length === 0 ? [] : [`[${options.join(' ')}]`]),
        ...words('hosts', hostPattern),
      ];
      cell.effects.certificateLines.push({ list, line: line.join(' '), place: cell.callPlace });
    }
    return EMPTY_TEXT;
  };

const declareStatus: Call = ({ positional: [object, status] }, { cell }) => {
  const [ref, patch] = [objectOf(object), deepPlain(status)];
  if (ref === undefined) return refuseArgument('status()', 'takes an object of Kubernetes first');
  if (!isRecord(patch)) return refuseArgument('status()', 'takes a mapping as the status');
  cell.effects.statuses.push({ object: ref, status: patch });
  return EMPTY_TEXT;
};

const makeRange: Call = ({ positional }) => {
  const numbers = positional.map(plain);
  if (!numbers.every((number) => Number.isSafeInteger(number))) {
    return refuseArgument('range()', 'takes whole numbers');
  }
  const [one = 0, two, step = 1] = numbers as number[];
  const [start, end] = two === undefined ? [0, one] : [one, two];
  const length = step === 0 ? Infinity : Math.max(0, Math.ceil((end - start) / step));
  if (length > MAX_RANGE) return refuseArgument('range()', `has more than ${MAX_RANGE} numbers`);
  return Array.from({ length }, (_, index) => start + index * step);
};
