// What a server says to a client whose session it ends, with nobody asking: a proxy puts it behind an answer, as it comes where both are on the way together.
import type { ServerType } from './server-subject.js';

export const FAREWELLS: Record<ServerType, Buffer> = {
  // ErrorResponse.
  postgres: Buffer.from('E\0\0\0\x1aSFATAL\0C57P01\0Mended\0\0', 'latin1'),
  // ERR 1927, "Connection was killed".
  mariadb: Buffer.from('\x0e\0\0\x01\xff\x87\x07#70100ended', 'latin1'),
};

/** In the packet that lets a client in, and in no other. */
export const ADMITTED: Record<ServerType, Buffer> = {
  // BackendKeyData.
  postgres: Buffer.from('K\0\0\0\x0c', 'latin1'),
  // OK, the third packet of a session, with nothing changed.
  mariadb: Buffer.from([0, 0, 2, 0, 0, 0, 2]),
};
