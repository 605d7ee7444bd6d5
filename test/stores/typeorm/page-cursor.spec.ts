import { cursorAfter, placeOf } from '../../../lib/stores/typeorm/page-cursor.js';

describe('the cursor of a list', () => {
  it('STO-8: leads back to the place it was made for', () => {
    const place = { createdAt: 1_700_000_000_000, id: 'run-1' };
    expect(placeOf('runs', cursorAfter('runs', place))).toEqual(place);
  });

  it.each([
    ['another list', cursorAfter('interactions', { createdAt: 1, id: 'a' })],
    ['text of the caller', "a') OR 1=1 --"],
    ['nothing', ''],
    ['a changed end', `${cursorAfter('runs', { createdAt: 1, id: 'a' })}=`],
    ['no time', Buffer.from(JSON.stringify(['runs', 'x', 'a'])).toString('base64url')],
  ])('STO-8: of %s is refused', (_what, cursor) => {
    expect(() => placeOf('runs', cursor)).toThrow(/was not given by the list of runs/);
  });
});
