import type { CrtListEntry, Digest, FileKind, ServerState } from '../protocol/protocol.ts';
import type { MerkleMap } from './merkle-map.ts';

/**
 * What a render declares about its structure (docs/adr/0008-ids-are-merkle-hashes.md). Everything is immutable, every part carries the
 * SHA-256 of its canonical encoding, and `id` is the digest over the digests of the parts, so equal digests need not be
 * descended into and two plans that differ in one byte anywhere have different ids.
 */
export interface Plan {
  readonly schemaVersion: 1;
  readonly id: Digest;
  /** Sections of the configuration file in order; exactly one has kind `backends`: there the backends stand, by name. */
  readonly sections: readonly Section[];
  readonly backends: MerkleMap<Backend>;
  readonly profiles: MerkleMap<Profile>;
  /** By path, for example `maps/hosts.map`. */
  readonly maps: MerkleMap<PlanMap>;
  /** Every file of the pod but maps, certificate lists and the configuration, by path. */
  readonly files: MerkleMap<PlanFile>;
  /** Certificate lists (`crt-list`) by path. */
  readonly crtLists: MerkleMap<CrtList>;
  /**
   * Digest and size in bytes of the whole configuration file. The digest may be computed at the first look, which costs
   * the length of the file; the id does not need it.
   */
  readonly config: { readonly path: string; readonly digest: Digest; readonly size: number };
}

export interface Section {
  readonly kind: 'core' | 'profile' | 'backends';
  readonly name: string;
  /** Digest of the section's text (of the list of backends for `backends`). */
  readonly digest: Digest;
}

/** A named `defaults` section that backends build on. */
export interface Profile {
  readonly name: string;
  /** What its text sets, as far as it was declared: backends that are added at run time take these over. */
  readonly mode?: 'http' | 'tcp';
  readonly balance?: string;
  readonly hashType?: string;
  /** It has a `default-server` line, which counts for servers of the file and not for those added at run time. */
  readonly defaultServer?: true;
  readonly digest: Digest;
}

export interface Backend {
  readonly name: string;
  readonly mode: 'http' | 'tcp';
  readonly profile: string;
  /** For example `roundrobin`, `leastconn`, `hash`. */
  readonly balance: string;
  /**
   * Of a hashing `balance`: `consistent` or `map-based` (which is also what absence means). Only with `consistent` can
   * servers come and go at run time.
   */
  readonly hashType?: string;
  /**
   * Digest of the backend's text without its server lines and without comments: what only a reload can change.
   */
  readonly structure: Digest;
  /** Digest of the backend's whole text as it stands in the configuration. */
  readonly text: Digest;
  /** Its text says nothing but mode, balance, hash-type and servers, comments aside. */
  readonly bare: boolean;
  /** False: servers cannot change at run time; `structuralReason` says why. */
  readonly dynamic: boolean;
  readonly structuralReason?: string;
  /** Sorted by name. */
  readonly servers: readonly Server[];
  /** Digest of the record. */
  readonly digest: Digest;
}

export interface Server {
  /** Stable identity of the endpoint, unique in its backend; at most 127 characters. */
  readonly name: string;
  /** IPv4 or IPv6 literal without brackets. */
  readonly address: string;
  readonly port: number;
  /** 0 to 256; 0 while `drain`, which is how a configuration file says so. */
  readonly weight: number;
  /** `maint` is `disabled` in the file. */
  readonly state: ServerState;
  /** Words that follow on the server line, one token each, for example `['check']`. */
  readonly keywords: readonly string[];
}

export interface PlanMap {
  readonly path: string;
  /** True: the order of entries matters (regular expressions, sub-strings) and keys may repeat. */
  readonly ordered: boolean;
  /** Unordered: key → value. Ordered: zero-padded position → `[key, value]` encoded by {@link MapEntry}. */
  readonly entries: MerkleMap<MapEntry>;
  /** Digest and size in bytes of the file's text. The digest may be computed at the first look. */
  readonly text: Digest;
  readonly size: number;
  /** Digest of the record; the text follows from the entries. */
  readonly digest: Digest;
}

export interface MapEntry {
  readonly key: string;
  readonly value: string;
  readonly digest: Digest;
}

export interface PlanFile {
  readonly path: string;
  readonly kind: FileKind;
  readonly text: Digest;
  readonly size: number;
  /** A change of this file needs a reload. */
  readonly reloadOnChange: boolean;
  readonly digest: Digest;
}

/** A certificate list; its text follows from its lines. */
export interface CrtList {
  readonly path: string;
  /** By the text of the line; a line that comes again has `#2`, `#3` … behind it. Their order is in `text` alone. */
  readonly lines: MerkleMap<CrtLine>;
  /** Key of the first line, whose certificate is the one for unknown names; empty when there is none. */
  readonly first: string;
  readonly text: Digest;
  /** Bytes of the text. */
  readonly size: number;
  readonly digest: Digest;
}

/** A line of a certificate list. */
export interface CrtLine extends CrtListEntry {
  readonly digest: Digest;
}

/** Hex SHA-256 of UTF-8 text; passed in, so that plans and templates also run in a browser. */
export type DigestFunction = (text: string) => Digest;
