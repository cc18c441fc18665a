// Shows the messages of the chosen socket, the newest first.

import { $, make } from './text.js';

const LAST = 200;
let tap = null, messages = [], counted = 0, missed = 0, drawn = 0, most = Infinity;

const hex = text => [...new TextEncoder().encode(text)].map(byte => byte.toString(16).padStart(2, '0')).join('');
const shown = part => (typeof part === 'string' ? part : '0x' + part.hex);

export const isTapping = () => tap !== null;

export function endTap(why) {
  if (tap) tap.close();
  tap = null;
  $('tap').textContent = 'show';
  if (why) $('tapped').textContent = why;
}

// Shows the next messages of a socket: all, or this number of them.
export function beginTap(row, count = Infinity) {
  endTap();
  forget('waiting for messages');
  most = count;
  const wanted = { of: row.process.name, socket: row.socket.id };
  if ($('way').value) wanted.direction = $('way').value;
  if ($('prefix').value) wanted.prefix = hex($('prefix').value);
  $('tap').textContent = 'stop';
  const own = tap = new EventSource('tap?' + Object.entries(wanted).map(pair => pair.join('=')).join('&'));
  own.onmessage = event => {
    counted++;
    messages.unshift(JSON.parse(event.data));
    messages.length = Math.min(messages.length, LAST);
    drawn ||= setTimeout(drawTap, 100);
    if (counted >= most) endTap();
  };
  own.addEventListener('missed', event => { missed += +event.data; });
  own.addEventListener('end', event => { if (tap === own) endTap(event.data); });
  own.onerror = () => { if (tap === own) endTap('the tap ended: at most eight tools can tap a process at the same time'); };
}

export function forget(text) {
  [messages, counted, missed] = [[], 0, 0];
  $('messages').replaceChildren();
  $('tapped').textContent = text;
}

function drawTap() {
  drawn = 0;
  $('tapped').textContent = `${counted} ${counted === 1 ? 'message' : 'messages'}${missed ? `, ${missed} missed` : ''}`;
  $('messages').replaceChildren(make('tbody', {}, ...messages.map(line)));
}

function line(one) {
  const rest = one.lengths ? `… (of ${one.lengths.join(' + ')} bytes)` : '';
  const texts = [one.time.slice(11, 23), one.direction, one.peer === undefined ? '' : 'peer ' + one.peer, one.parts.map(shown).join(' │ ') + rest];
  return make('tr', {}, ...texts.map((text, at) => make('td', { class: at < 3 ? 'dim' : '', textContent: text })));
}
