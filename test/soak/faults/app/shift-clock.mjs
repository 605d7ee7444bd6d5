// Preloaded: this process's wall clock is so many milliseconds off. Its monotonic clock is not.
const offset = Number(process.env.CLOCK_OFFSET_MS);
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
