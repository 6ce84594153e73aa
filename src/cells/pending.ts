/**
 * Thrown by a cell that needs something which is not there yet, such as the content of an on-demand Secret. A render in which
 * a cell throws it is not complete; it is made again once what the key names is there.
 */
export class Pending extends Error {
  readonly key: string;

  constructor(key: string) {
    super(`waits for ${key}`);
    this.name = 'Pending';
    this.key = key;
  }
}
