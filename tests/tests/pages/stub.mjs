// Runs the script of a page on a document that remembers elements and shows nothing, and prints what a reader would find there.

import fs from 'node:fs';
import vm from 'node:vm';

const html = fs.readFileSync(process.argv[2], 'utf8');
const block = id => { const found = html.match(new RegExp(`<script type="application/json" id="${id}">([\\s\\S]*?)</script>`)); return found ? found[1] : null; };
const script = html.match(/<script>('use strict'[\s\S]*?)<\/script>\n<\/body>/)[1];

class Element {
  constructor() {
    Object.assign(this, { children: [], dataset: {}, attributes: {}, hidden: false, value: '', className: '', own: '', scrollTop: 0, clientHeight: 500, scrollHeight: 9000 });
    this.style = { setProperty() {} };
    this.classList = { add() {}, remove() {} };
  }
  get length() { return this.children.length; }
  get textContent() { return this.own + this.children.map(child => typeof child === 'string' ? child : child.textContent).join(''); }
  set textContent(text) { this.own = text; this.children = []; }
  append(...children) { if (children.includes(undefined)) throw new Error('undefined was appended'); this.children.push(...children); }
  replaceChildren(...children) { this.children = []; this.append(...children); }
  addEventListener() {} setAttribute(name, value) { this.attributes[name] = value; } removeAttribute(name) { delete this.attributes[name]; }
  querySelector() { return new Element(); } querySelectorAll() { return []; } closest() { return null; }
  getBoundingClientRect() { return { top: 0, bottom: 20, left: 0, width: 100 }; }
  scrollIntoView() {} scrollBy(x, y) { this.scrollTop += y; } focus() { this.isFocused = true; }
}

const known = {};
const get = id => known[id] ??= Object.assign(new Element(), { id, own: block(id) ?? '' });
const document = { getElementById: get, createElement: () => new Element(), createElementNS: () => new Element(), createTreeWalker: () => ({ nextNode: () => null }),
  documentElement: new Element(), addEventListener() {} };
const context = { document, location: { hash: '', pathname: '/' }, window: { addEventListener() {}, history: { replaceState() {} } }, ResizeObserver: class { observe() {} },
  NodeFilter: {}, requestAnimationFrame() {}, getComputedStyle: () => ({ getPropertyValue: () => '30' }), setTimeout, clearTimeout };
vm.createContext(context);
vm.runInContext(script + '\n;globalThis.it = { keys, setTab, show, about, nearPath, now, list, get items() { return items; }, get turns() { return turns; } };', context);
const { it } = context;
const press = (key, id = '') => it.keys({ key, target: { id, closest: () => null, getAttribute: () => null }, preventDefault() {} });
const say = (what, is) => console.log(what + ': ' + is);

say('facts', get('facts').textContent.split(' · ').slice(3).filter(fact => !fact.startsWith('acpdb')).join(' · '));
say('hidden tabs', get('tabs').children.filter(tab => tab.hidden).map(tab => tab.dataset.tab).join(' '));
say('focus', Boolean(get('talk').isFocused));
for (const key of ['PageDown', ' ', 'ArrowUp']) press(key);
say('scrolled to', get('talk').scrollTop);
for (const turn of it.turns) say('turn ' + turn.turn, turn.items.map(item => item.role + ' ' + item.id).join(', '));
for (const item of it.items.filter(item => item.kind === 'call')) say(item.tool, it.about(item, 1e9));
say('prompts', get('prompts').children.map(option => option.textContent).join(' | '));
get('kind').value = 'user';
it.show();
say('of prompts', get('count').textContent);
get('kind').value = '';
for (const tab of ['history', 'context', 'chains', 'turns', 'talk']) it.setTab(tab);
get('search').value = it.now.query = 'lines';
it.now.pattern = /lines/i;
it.show();
press('Enter', 'search');
say('first hit', it.now.selected && it.now.selected.id);
press('Enter', 'search');
say('next hit', it.now.selected && it.now.selected.id);
say('a path', it.nearPath('D:\\shop\\website\\src\\components\\editor\\index.js'));
