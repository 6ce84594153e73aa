import { describe, expect, it } from 'vitest';
import { needsOf, withOrigin } from '../../../src/gate/config-needs.ts';

describe('needsOf', () => {
  it.each([
    ['global\n    default-path origin /etc/haproxy\n', '/etc/haproxy'],
    ['global\n\tdefault-path\torigin "/etc/my haproxy" # x\n', '/etc/my haproxy'],
    ["global\n default-path origin '/a'", '/a'],
    ['global\n    default-path config\n', undefined],
    ['# default-path origin /etc/haproxy\n', undefined],
  ])('reads the base directory of %j', (config, baseDir) => {
    expect(needsOf(config).baseDir).toBe(baseDir);
  });

  it.each([
    ['    user haproxy\n'],
    ['    group haproxy # why\n'],
    ['    stats socket /run/s.sock mode 660 group haproxy level admin\n'],
    ['    bind unix@/run/s.sock user haproxy mode 600\n'],
  ])('needs the accounts for %j', (line) => {
    expect(needsOf(`global\n${line}`).systemFiles).toEqual(['/etc/passwd', '/etc/group']);
  });

  it.each([
    ['userlist ops\n    user alice password x\n    group admins users alice\n'],
    ['    http-request set-header user haproxy\n'],
    ['    # user haproxy\n'],
  ])('needs no accounts for %j', (lines) => {
    expect(needsOf(lines).systemFiles).toEqual([]);
  });

  it('needs the resolver’s file where it is read', () => {
    expect(needsOf('resolvers a\n    parse-resolv-conf\n').systemFiles).toEqual([
      '/etc/resolv.conf',
    ]);
  });
});

describe('withOrigin', () => {
  it('changes the first such directive and nothing else', () => {
    const config = 'global\r\n  default-path origin /a # /a\n  x "/a"\ndefault-path origin /b\n';
    expect(withOrigin(config, '/m/$&')).toBe(
      'global\r\n  default-path origin /m/$& # /a\n  x "/a"\ndefault-path origin /b\n',
    );
  });

  it('leaves a configuration without it as it is', () => {
    expect(withOrigin('global\n', '/m')).toBe('global\n');
  });
});
