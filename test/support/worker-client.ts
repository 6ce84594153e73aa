import { request } from 'node:http';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { TestKeyPair } from './key-pairs.ts';

/** What clients see of a worker that listens on `web.sock` (HTTP) and `tls.sock` (HTTPS, answers with `ssl_c_err`) in a folder. */
export class WorkerClient {
  readonly dir: string;

  /** @param dir the folder */
  constructor(dir: string) {
    this.dir = dir;
  }

  /** Status, or the body of a 200. */
  ask(route = 'shop', path = '/'): Promise<string> {
    return new Promise((resolve, reject) => {
      const options = { socketPath: join(this.dir, 'web.sock'), path, agent: false };
      request({ ...options, headers: { 'x-route': route } }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (part: string) => (body += part));
        response.on('end', () =>
          resolve(response.statusCode === 200 ? body : String(response.statusCode)),
        );
      })
        .on('error', reject)
        .end();
    });
  }

  /** Every answer of so many requests, each once. */
  async answers(route = 'shop'): Promise<readonly string[]> {
    const all = new Set<string>();
    for (let count = 0; count < 6; count += 1) all.add(await this.ask(route));
    return [...all].sort();
  }

  /** Fingerprint of the certificate that is served, and the error that HAProxy finds with the client's own; 0: none. */
  shake(servername: string, own?: TestKeyPair): Promise<{ served: string; error: string }> {
    return new Promise((resolve, reject) => {
      const keys = own === undefined ? {} : { cert: own.certificate, key: own.key };
      const path = join(this.dir, 'tls.sock');
      const socket = connect({ path, servername, rejectUnauthorized: false, ...keys }, () => {
        const served = socket.getPeerCertificate().fingerprint256;
        let text = '';
        socket.on('data', (part: Buffer) => (text += part.toString()));
        socket.on('end', () => resolve({ served, error: text.split('\r\n\r\n')[1] ?? '' }));
        socket.write('GET / HTTP/1.0\r\n\r\n');
      });
      socket.on('error', reject);
    });
  }

  async served(name: string): Promise<string> {
    return (await this.shake(name)).served;
  }
}
