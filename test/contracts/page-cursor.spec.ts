import { cursorAfter, placeOf } from '../../lib/contracts/page-cursor.js';

describe('the cursor of a list', () => {
  it('STO-8: leads back to the place it was made for', () => {
    const run = { createdAt: 1_700_000_000_000, id: 'run-1' };
    expect(placeOf('runs', cursorAfter('runs', run))).toEqual(run);
    const ask = { createdAt: 1_700_000_000_000, runId: 'run-1', place: 'r11.m11.t10#10', id: 'int_1' };
    expect(placeOf('interactions', cursorAfter('interactions', ask))).toEqual(ask);
  });

  it.each([
    ['another list', cursorAfter('interactions', { createdAt: 1, runId: 'a', place: 'b', id: 'c' })],
    ['text of the caller', "a') OR 1=1 --"],
    ['nothing', ''],
    ['a changed end', `${cursorAfter('runs', { createdAt: 1, id: 'a' })}=`],
    ['more than a place', Buffer.from(JSON.stringify(['runs', 1, 'a', 'b'])).toString('base64url')],
    ['an id with NUL', Buffer.from(JSON.stringify(['runs', 1, 'a\0'])).toString('base64url')],
    ['an id beyond ASCII', Buffer.from(JSON.stringify(['runs', 1, '\u00e9'])).toString('base64url')],
    ['an empty id', Buffer.from(JSON.stringify(['runs', 1, ''])).toString('base64url')],
    ['another alphabet', '\u00e9\0'],
    ['no time', Buffer.from(JSON.stringify(['runs', 'x', 'a'])).toString('base64url')],
  ])('STO-8: of %s is refused', (_what, cursor) => {
    expect(() => placeOf('runs', cursor)).toThrow(/was not given by the list of runs/);
  });
});
