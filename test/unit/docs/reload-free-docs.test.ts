import { expect, test } from 'vitest';
import { RELOAD_FREE, type ReloadFreeRow } from '../../../src/plan/reload-free.ts';

const VERSIONS = ['3.0', '3.2', '3.4'] as const;

const cell = (text: string): string => text.replaceAll('|', '\\|');

const rowOf = ([id, row]: readonly [string, ReloadFreeRow]): string => {
  const { change, since, condition = '', otherwise } = row;
  const takes = VERSIONS.map((version) => (since !== undefined && version >= since ? 'yes' : 'no'));
  return `| ${[`\`${id}\``, change, ...takes, condition, otherwise].map(cell).join(' | ')} |`;
};

const page = `# What changes without a reload

Written from \`src/plan/reload-free.ts\`, the table that the controller asks what a version takes: \`npx vitest run --config
test/vitest.config.ts test/unit/docs/reload-free-docs.test.ts -u\` writes this page anew. \`haptic diff\` names the reason whenever
a change needs a reload.

A column says whether that HAProxy version takes the change while it runs, when the condition holds; otherwise the change waits
for a reload, for the reason in the last column.

| Row | What changes | 3.0 | 3.2 | 3.4 | When | Why otherwise a reload |
|---|---|---|---|---|---|---|
${Object.entries<ReloadFreeRow>(RELOAD_FREE).map(rowOf).join('\n')}
`;

test('docs/reload-free.md is what the table of the code says (G6)', async () => {
  await expect(page).toMatchFileSnapshot('../../../docs/reload-free.md');
});

test('every row that a version takes only sometimes says why not otherwise', () => {
  for (const [id, row] of Object.entries<ReloadFreeRow>(RELOAD_FREE)) {
    const always = row.since === '3.0' && row.condition === undefined;
    expect(row.otherwise !== '', id).toBe(!always);
  }
});
