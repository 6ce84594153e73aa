/** Rules and dashboard of the rendered chart. */
import { named, present, type Rendered } from './chart.ts';

/** An alert. */
export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A panel of the dashboard. */
export interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** The alerts of the PrometheusRule. */
export function rulesOf(objects: readonly Rendered[]): readonly Rule[] {
  const { spec } = present(objects.find(({ kind }) => kind === 'PrometheusRule'));
  const { groups } = spec as { readonly groups: readonly { readonly rules: readonly Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

/** The panels of the dashboard, its rows included. */
export function panelsOf(objects: readonly Rendered[]): readonly Panel[] {
  const text = present(named(objects, 'ConfigMap', '-dashboard').data?.['haptic.json']);
  return (JSON.parse(text) as { readonly panels: readonly Panel[] }).panels;
}

/** Every query of the dashboard. */
export function queriesOf(objects: readonly Rendered[]): readonly string[] {
  return panelsOf(objects).flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}
