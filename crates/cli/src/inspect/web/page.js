// Requests the data of all processes every second, and draws them.

import { drawCharts } from './charts.js';
import { drawGraph } from './graph.js';
import { beginTap, endTap, forget, isTapping } from './messages.js';
import { ageOf, endpointOf, measure, nameOf, remember, samplesOf } from './rows.js';
import { $, grouped, make, many, short, span } from './text.js';

// Rows of a table and findings that are drawn. The rest is counted.
const ROWS = 200, HINTS = 6;
const LEVELS = { trouble: 2, warning: 1, note: 0 };

let chosen = null, order = 'trouble', held = false, last = null, failing = false, allHints = false;

// Columns: key, title, value to sort by, text, class.
const COLUMNS = [
  ['pid', 'PID', row => row.process.pid, row => row.process.name, 'key'],
  ['program', 'program', row => row.process.program, row => row.process.program, 'key'],
  ['socket', 'socket', row => row.socket.type_name, row => `${row.socket.id} ${row.socket.type_name}`, 'key'],
  ['where', 'endpoint', row => placesOf(row), row => placesOf(row), 'where'],
  ['peers', 'peers', row => row.peers.length, row => row.peers.length, 'n'],
  ['out', 'sent/s', row => row.rates.out, row => short(row.rates.out), 'n'],
  ['in', 'received/s', row => row.rates.in, row => short(row.rates.in), 'n'],
  ['queued', 'waiting', row => row.queued, row => short(row.queued), 'n'],
  ['full', 'full', row => row.full, row => row.fullText, 'n'],
  ['age', 'age', row => row.age, row => span(row.age), 'n'],
  ['trouble', 'what', row => row.level, row => row.what, 'what'],
];
const placesOf = row => row.endpoints.map(endpointOf).join(' ');

function compare(value, a, b) {
  const [x, y] = [value(a), value(b)];
  const first = typeof x === 'number' && order !== 'pid' ? y - x : x > y ? 1 : x < y ? -1 : 0;
  // A process that ended comes after the running ones, unless another order was chosen.
  return order === 'trouble' && b.process.runs - a.process.runs || first || b.process.runs - a.process.runs || b.full - a.full || b.queued - a.queued || a.process.pid - b.process.pid || a.socket.id - b.socket.id;
}

function more(count, what) {
  return count > 0 ? [make('caption', { class: 'dim', textContent: `and ${many(count, what)} more` })] : [];
}

function cell(title, text, kind) {
  const node = make('td', { class: kind, textContent: text });
  node.dataset.column = title;
  return node;
}

function drawTable(rows) {
  const filter = $('filter').value.toLowerCase(), value = COLUMNS.find(column => column[0] === order)[2];
  const wanted = rows.filter(row => COLUMNS.map(column => column[3](row)).join(' ').toLowerCase().includes(filter));
  wanted.sort((a, b) => compare(value, a, b));
  const head = make('tr', {}, ...COLUMNS.map(([name, title, , , kind]) => make('th', { class: kind, textContent: title + (name === order ? ' ▾' : ''), onclick: () => { order = name; show(); } })));
  const body = wanted.slice(0, ROWS).map(row => {
    const state = (row.key === chosen ? ' chosen' : '') + (row.process.runs ? '' : ' ended');
    const cells = COLUMNS.map(([name, title, , text, kind]) => cell(title, text(row), name === 'trouble' && row.process.runs ? kind + ' ' + ['good', 'some', 'bad'][row.level] : name === 'age' && row.isOld ? 'n some' : kind));
    return make('tr', { class: 'pick' + state, onclick: () => choose(row.key) }, ...cells);
  });
  $('sockets').replaceChildren(...more(wanted.length - ROWS, 'socket'), make('thead', {}, head), make('tbody', {}, ...body));
}

// Columns of the peers: title, text, class.
const PEERS = [
  ['peer', peer => peer.id, ''],
  ['address', nameOf, ''],
  ['known as', peer => [peer.routing_id, peer.user_id].filter(Boolean).join(' '), ''],
  ['state', peer => peer.state, ''],
  ['sent', peer => short(peer.messages_out), 'n'],
  ['received', peer => short(peer.messages_in), 'n'],
  ['waiting out', peer => queueOf(peer.queued_out, peer.limit_out), 'n'],
  ['waiting in', peer => queueOf(peer.queued_in, peer.limit_in), 'n'],
  ['dropped', peer => short(peer.dropped), 'n'],
  ['full', (peer, process) => fullOf(peer, process), ''],
  ['reconnects', peer => peer.reconnects, 'n'],
  ['heartbeat', peer => (peer.round_trip_us ? (peer.round_trip_us / 1000).toFixed(1) + ' ms' : ''), 'n'],
];
const queueOf = (queued, limit) => `${grouped(queued)} of ${limit ? grouped(limit) : '∞'}`;

function fullOf(peer, process) {
  if (peer.full_since) return `for ${span(process.written - peer.full_since)}: the reader is slower`;
  return peer.full_in_since ? `reads too slowly, for ${span(process.written - peer.full_in_since)}` : '';
}

function endpointLine(one) {
  return `${one.bound ? 'bound to ' : 'connects to '}${endpointOf(one)}, ${one.state}${one.reason ? ': ' + one.reason : ''}`;
}

function drawDetail(row, now) {
  $('detail').hidden = $('tapping').hidden = !row;
  if (!row) return;
  const { process, socket } = row;
  $('which').textContent = `${many(row.peers.length, 'peer')} of ${process.program} ${process.name}, socket ${socket.id} ${socket.type_name}`;
  const marks = `high-water marks ${socket.send_hwm || 'none'} out, ${socket.receive_hwm || 'none'} in`;
  const age = process.runs ? `counters ${span(ageOf(process, now))} old` : `${process.end}: this is its last state`;
  $('about').textContent = [age, marks, socket.mechanism, ...row.endpoints.map(endpointLine)].join('; ');
  const peers = [...row.peers].sort((a, b) => b.queued_out + b.queued_in - a.queued_out - a.queued_in);
  const lines = peers.slice(0, ROWS).map(peer => make('tr', {}, ...PEERS.map(([title, text, kind]) => cell(title, text(peer, process), kind))));
  $('peers').replaceChildren(...more(peers.length - ROWS, 'peer'), make('thead', {}, make('tr', {}, ...PEERS.map(([title, , kind]) => make('th', { class: kind, textContent: title })))), make('tbody', {}, ...lines));
}

function drawHints(data) {
  const all = data.processes.flatMap(process => process.hints.map(hint => ({ process, hint })));
  all.sort((a, b) => b.process.runs - a.process.runs || LEVELS[b.hint.level] - LEVELS[a.hint.level]);
  const lines = data.faults.map(fault => make('div', { class: 'some', textContent: fault }));
  for (const { process, hint } of all.slice(0, allHints ? all.length : HINTS)) {
    lines.push(make('div', {}, make('b', { class: hint.level, textContent: `${process.program} ${process.name}: ${hint.what}` }), make('p', { textContent: hint.evidence }), make('p', { textContent: hint.advice })));
  }
  if (all.length > HINTS) lines.push(make('button', { textContent: allHints ? 'show fewer' : `show all ${all.length}`, onclick: () => { allHints = !allHints; show(); } }));
  if (!lines.length) lines.push(make('p', { class: 'good', textContent: 'no problems found' }));
  $('hints').replaceChildren(...lines);
}

function drawHead(data, rows, sums) {
  const running = data.processes.filter(one => one.runs), ended = data.processes.length - running.length;
  const sockets = rows.filter(row => row.process.runs).length, peers = running.reduce((sum, one) => sum + one.peers.length, 0);
  const parts = [
    ...[many(running.length, 'process'), ...(ended ? [`${ended} ended`] : []), many(sockets, 'socket'), many(peers, 'peer')].map(text => text.split(' ')),
    [short(sums.out), 'sent/s'], [short(sums.in), 'received/s'], [short(sums.lost), 'lost/s'],
  ];
  $('sums').replaceChildren(...parts.map(([value, name]) => make('span', {}, make('b', { textContent: value, class: name === 'lost/s' && sums.lost > 0 ? 'bad' : '' }), ` ${name}`)));
}

// Shows the age of what is on the page.
function drawState() {
  if (!last) {
    $('state').textContent = failing ? 'taut web does not reply. Does it still run?' : '';
    return;
  }
  const since = (performance.now() - last.arrived) * 1000, oldest = Math.max(0, ...last.data.processes.filter(one => one.runs).map(one => ageOf(one, last.data.now)));
  $('state').className = failing || oldest > 3e6 ? 'some' : 'dim';
  $('state').textContent = failing ? `taut web does not reply. Does it still run? This is ${span(since + oldest)} old` : held ? `held, ${span(since + oldest)} old` : `counters at most ${span(oldest)} old`;
}

function choose(key) {
  chosen = chosen === key ? null : key;
  wish = '';
  endTap();
  forget('');
  show();
}

function show() {
  drawState();
  if (!last) return;
  const { data, rows, sums } = last, row = chosenRow();
  drawHead(data, rows, sums);
  drawHints(data);
  drawGraph($('graph'), data.processes, rows, chosen, choose);
  $('title').textContent = row ? `${row.process.program} ${row.process.name}, socket ${row.socket.id} ${row.socket.type_name}` : 'All sockets';
  drawCharts($('charts'), samplesOf(row), data.now);
  drawTable(rows);
  drawDetail(row, data.now);
}

// #PID/SOCKET in the address chooses a socket, with /tap behind it its messages are shown, and with
// /tap/N the next N.
let wish = decodeURIComponent(location.hash.slice(1));
function grant(rows) {
  const [key, tapped, count] = wish.split(/\/(tap)\/?/), row = rows.find(one => one.key === key);
  if (!row) return;
  chosen = key;
  if (tapped) beginTap(row, +count || Infinity);
  wish = '';
}

async function look() {
  if (!held) {
    try {
      const data = await (await fetch('data')).json(), rows = measure(data);
      last = { data, rows, sums: remember(rows, data.now), arrived: performance.now() };
      failing = false;
      if (wish) grant(rows);
      show();
    } catch (error) {
      failing = true;
      console.error(error);
    }
  }
  drawState();
  setTimeout(look, 1000);
}

const chosenRow = () => last && last.rows.find(one => one.key === chosen);
$('tap').addEventListener('click', () => {
  if (isTapping()) endTap('stopped'); else if (chosenRow()) beginTap(chosenRow());
});
for (const id of ['way', 'prefix']) $(id).addEventListener('change', () => { if (isTapping() && chosenRow()) beginTap(chosenRow()); });
$('filter').addEventListener('input', show);
$('hold').addEventListener('click', () => {
  held = !held;
  $('hold').textContent = held ? 'go on' : 'hold';
  drawState();
});
let width = innerWidth;
addEventListener('resize', () => { if (innerWidth !== width) { width = innerWidth; show(); } });
look();
