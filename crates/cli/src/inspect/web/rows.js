// Converts a reading of all processes to rows, one for each socket, with the rates since the
// reading before.

import { grouped, percent, short, span } from './text.js';

// Seconds that the charts show.
export const SECONDS = 180;
// Fill level of a queue from which it is worth a word.
const FULL = 0.5;
// Age of the counters of a running process that is worth a word, in microseconds.
const OLD = 3e6;

let former = new Map();
const history = new Map();
// Process and socket at each end of the connections: both ends know both addresses.
let ends = new Map();

export const endpointOf = one => one.name || one.given;
export const ageOf = (process, now) => Math.max(0, now - process.written);

// The fullest queue of a socket. `out` is true if it waits for the peer, and false if it waits for
// the program. `since` is not 0 if the queue was full and has not been empty since then.
function fullest(peers) {
  let most = { part: 0, since: 0 };
  const weight = queue => queue.part + (queue.since ? 1 : 0);
  for (const peer of peers) {
    for (const queue of [
      { part: peer.queued_out / peer.limit_out, limit: peer.limit_out, since: peer.full_since, out: true, peer },
      { part: peer.queued_in / peer.limit_in, limit: peer.limit_in, since: peer.full_in_since, out: false, peer },
    ]) {
      if (queue.limit && weight(queue) > weight(most)) most = queue;
    }
  }
  return most;
}

const fill = queue => `${percent(queue.part)} of ${grouped(queue.limit)}`;

// Process and socket ID of a peer, if the process is observed.
export const endOf = peer => ends.get(peer.address + ' ' + peer.local);

// Name of a peer: its program if it is on this host.
export function nameOf(peer) {
  const end = endOf(peer);
  if (end) return `${end.process.program} (${end.process.name})`;
  if (peer.process) return `${peer.program || 'process'} (${peer.process})`;
  return peer.routing_id || peer.address || peer.endpoint;
}

function meaning(queue, process) {
  if (queue.part <= FULL && !queue.since) return '';
  const reader = queue.out ? `the reader ${nameOf(queue.peer)} is slower` : 'this program reads slower than messages arrive';
  const time = queue.since ? `, for ${span(process.written - queue.since)}` : '';
  return `${reader}${time}: queue ${fill(queue)}`;
}

function isOld(process, now) {
  return process.runs && ageOf(process, now) > Math.max(OLD, 4 * process.interval_us);
}

// The remark about a socket, and its level: 2 is trouble, 1 a warning.
function judge(process, socket, rates, queue, hint, now) {
  if (!process.runs) return [0, process.end];
  const slow = meaning(queue, process);
  const old = isOld(process, now) ? `no news for ${span(ageOf(process, now))}: the process is stopped, or has no processor` : '';
  if (rates.lost > 0) return [2, [`loses ${short(rates.lost)}/s`, slow || (hint ? hint.what : '')].filter(Boolean).join(': ')];
  if (hint) return [hint.level === 'trouble' ? 2 : 1, [hint.what, slow].filter(Boolean).join('; ')];
  return [slow || old ? 1 : 0, slow || old];
}

export function measure(data) {
  const rows = [], seen = new Map();
  ends = new Map();
  for (const process of data.processes.filter(one => one.runs)) {
    for (const peer of process.peers.filter(one => one.address && one.local)) ends.set(peer.local + ' ' + peer.address, { process, socket: peer.socket });
  }
  for (const process of data.processes) {
    const worst = new Map();
    for (const hint of process.hints) {
      if (hint.socket && hint.level !== 'note' && !worst.has(hint.socket)) worst.set(hint.socket, hint);
    }
    for (const socket of process.sockets) {
      const key = process.name + '/' + socket.id, before = former.get(key);
      const counts = { out: socket.messages_out, in: socket.messages_in, lost: socket.dropped + socket.unroutable + socket.lost };
      const rates = { out: 0, in: 0, lost: 0 };
      if (process.runs && before && before.start === process.start_ticks) {
        const seconds = (process.written - before.written) / 1e6;
        for (const name in rates) {
          rates[name] = seconds > 0 ? Math.max(0, counts[name] - before.counts[name]) / seconds : before.rates[name];
        }
      }
      seen.set(key, { start: process.start_ticks, written: process.written, counts, rates });
      const peers = process.peers.filter(peer => peer.socket === socket.id);
      const endpoints = process.endpoints.filter(one => one.socket === socket.id);
      const queue = process.runs ? fullest(peers) : { part: 0, since: 0 };
      const [level, what] = judge(process, socket, rates, queue, worst.get(socket.id), data.now);
      rows.push({
        key, process, socket, peers, endpoints, rates, level, what,
        age: ageOf(process, data.now), isOld: isOld(process, data.now),
        full: queue.part, fullText: queue.part >= 0.01 ? fill(queue) : '',
        queued: process.runs ? socket.queued_out + socket.queued_in : 0,
      });
    }
  }
  former = seen;
  return rows;
}

// Keeps the figures of each row for the charts. Returns their sums.
export function remember(rows, now) {
  const keep = (key, rates, queued) => {
    const all = history.get(key) || [];
    all.push({ at: now, ...rates, queued });
    history.set(key, all.filter(one => now - one.at <= SECONDS * 1e6));
  };
  const sums = { out: 0, in: 0, lost: 0 };
  let queued = 0;
  for (const row of rows) {
    for (const name in sums) sums[name] += row.rates[name];
    queued += row.queued;
    keep(row.key, row.rates, row.queued);
  }
  keep('', sums, queued);
  for (const key of history.keys()) if (key && !former.has(key)) history.delete(key);
  return sums;
}

// The figures of a row, or of all rows together.
export const samplesOf = row => history.get(row ? row.key : '') || [];
