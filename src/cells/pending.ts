/**
 * Thrown by a cell that needs something which is not there yet (an on-demand Secret, HTTP content). Reserved: a render
 * in which a cell throws it fails and names the key.
 */
export class Pending extends Error {
  readonly key: string;

  constructor(key: string) {
    super(`waits for ${key}`);
    this.name = 'Pending';
    this.key = key;
  }
}
