// The application's connection, by URL.
export function databaseOptions(url) {
  if (url.startsWith('sqlite:')) {
    return {
      type: 'better-sqlite3',
      database: url.slice('sqlite:'.length),
      prepareDatabase: (connection) => {
        connection.pragma('journal_mode = WAL');
        connection.pragma('synchronous = FULL');
      },
    };
  }
  return url.startsWith('mysql:')
    ? { type: 'mysql', url, charset: 'utf8mb4', timezone: 'Z', poolSize: 5 }
    : { type: 'postgres', url, poolSize: 5 };
}
