/** Whether a version of HAProxy, such as `3.4.7` or `3.5-dev1`, is another one or newer. */
export const isAtLeast = (version: string, minimum: string): boolean => {
  const [left, right] = [numbersOf(version), numbersOf(minimum)];
  const first = [...left.keys()].find((index) => left[index] !== right[index]);
  return first === undefined || (left[first] ?? 0) > (right[first] ?? 0);
};

/** `3.4` of `3.4.7`. */
export const minorOf = (version: string): string => version.split('.').slice(0, 2).join('.');

/** The first three numbers; what is none counts as 0. */
const numbersOf = (version: string): readonly number[] => {
  const parts = version.split(/[.+-]/);
  return [0, 1, 2].map((index) => Number.parseInt(parts[index] ?? '', 10) || 0);
};
