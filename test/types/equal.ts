/** True only for the very same type. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** For the compiler: `is<Equal<A, B>>(true)` does not compile where they differ. */
export const is = <T extends boolean>(value: T): T => value;

/** The same of a value: `exactly<string>()(value, true)`. */
export const exactly =
  <Expected>() =>
  <Actual>(_value: Actual, same: Equal<Actual, Expected>): boolean =>
    same;
