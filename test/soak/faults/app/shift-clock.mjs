// Preloaded: this process's wall clock is so many milliseconds off, and can be set. Its monotonic clock is not.
let offset = Number(process.env.CLOCK_OFFSET_MS);
globalThis.setClock = (byMs) => (offset += byMs);
const RealDate = Date;

globalThis.Date = class Date extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(RealDate.now() + offset);
    else super(...parts);
  }

  static [Symbol.hasInstance](value) {
    return value instanceof RealDate;
  }

  static now() {
    return RealDate.now() + offset;
  }
};
