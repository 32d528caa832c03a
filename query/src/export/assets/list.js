// A list of which only the rows in sight exist. Every row is as high as `--row` says.

class VirtualList {
  constructor(box, inner, make) {
    this.box = box;
    this.inner = inner;
    this.make = make;
    this.rows = [];
    this.made = new Map();
    this.picked = -1;
    // On paper all rows exist.
    this.all = false;
    // Browsers tell of scrolling once a frame.
    box.addEventListener('scroll', () => this.draw(), { passive: true });
    new ResizeObserver(() => { this.forget(); this.draw(); }).observe(box);
  }

  height() { return parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row')) || 30; }

  set(rows, picked) {
    this.rows = rows;
    this.picked = picked;
    this.forget();
    this.draw();
  }

  forget() {
    this.made.clear();
    this.inner.replaceChildren();
  }

  draw() {
    // The other views have rows of their own.
    if (this.box.hidden) return;
    const height = this.height();
    this.inner.style.height = this.rows.length * height + 'px';
    const from = this.all ? 0 : Math.max(0, Math.floor(this.box.scrollTop / height) - 8);
    const to = this.all ? this.rows.length : Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / height) + 8);
    for (const [place, element] of this.made) {
      if (place < from || place >= to) { element.remove(); this.made.delete(place); }
    }
    for (let place = from; place < to; place += 1) {
      if (this.made.has(place)) continue;
      const element = this.make(this.rows[place]);
      element.id = 'row-' + place;
      element.dataset.place = place;
      element.setAttribute('role', 'option');
      element.setAttribute('aria-setsize', this.rows.length);
      element.setAttribute('aria-posinset', place + 1);
      element.setAttribute('aria-selected', place === this.picked);
      element.style.transform = 'translateY(' + place * height + 'px)';
      this.made.set(place, element);
      this.inner.append(element);
    }
    if (this.picked >= 0) this.box.setAttribute('aria-activedescendant', 'row-' + this.picked);
    else this.box.removeAttribute('aria-activedescendant');
  }

  // Brings a row into sight, without picking it.
  reveal(place) {
    if (place < 0 || this.box.hidden) return;
    const height = this.height(), top = place * height, room = this.box.clientHeight;
    if (top < this.box.scrollTop || top + height > this.box.scrollTop + room) this.box.scrollTop = Math.max(0, top - room + 2 * height);
    this.draw();
  }

  pick(place, center) {
    const before = this.made.get(this.picked);
    if (before) before.setAttribute('aria-selected', 'false');
    this.picked = place;
    if (place >= 0 && !this.box.hidden) {
      const height = this.height(), top = place * height, room = this.box.clientHeight;
      if (center && (top < this.box.scrollTop || top + height > this.box.scrollTop + room)) this.box.scrollTop = top - room / 2;
      else if (top < this.box.scrollTop) this.box.scrollTop = top;
      else if (top + height > this.box.scrollTop + room) this.box.scrollTop = top + height - room;
    }
    this.draw();
    const now = this.made.get(place);
    if (now) now.setAttribute('aria-selected', 'true');
  }
}
