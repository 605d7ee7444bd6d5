import { startApplication } from './application.mjs';
import { databasesOf } from './databases.mjs';
const keep=setInterval(()=>{},1e6);
for (const t of ['mysql://root@127.0.0.1:3306','postgres://postgres@127.0.0.1:5432']) {
const [open] = databasesOf(t, 10); const db = await open(); const app = await startApplication(db);
await new Promise(r=>setTimeout(r,20000));
const { counter, stop } = db.countStatements();
await new Promise(r=>setTimeout(r,60000));
console.log(t, counter.statements/60, counter.queries/60); stop();
await app.close(); await db.close(); }
clearInterval(keep);
