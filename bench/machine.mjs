// What the numbers were measured on. Ratios travel between machines, these facts say how far.
import { statfsSync } from 'node:fs';
import { cpus, freemem, loadavg, totalmem } from 'node:os';

const FILE_SYSTEMS = new Map([
  [0xef53, 'ext4'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x01021994, 'tmpfs'],
  [0x794c7630, 'overlay'],
  [0x2fc12fc1, 'zfs'],
  [0x1a, 'apfs'],
]);

export function machineFacts() {
  const cores = cpus();
  return {
    cores: cores.length,
    cpu: cores[0]?.model.trim() ?? 'unknown',
    memoryGb: Math.round(totalmem() / 2 ** 30),
    freeMemoryGb: Math.round(freemem() / 2 ** 30),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    load: load(),
  };
}

/** Runnable tasks, averaged over the last minute: more than the cores means that others were measured too. */
export function load() {
  return Number(loadavg()[0].toFixed(1));
}

export function fileSystemOf(path) {
  const { type } = statfsSync(path);
  return FILE_SYSTEMS.get(type) ?? `0x${type.toString(16)}`;
}
