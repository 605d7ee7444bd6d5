// A TCP proxy between a data source and its server: it can cut what is open, hold or cut at a packet, slow everything down, and partition the network.
import { createServer, connect, type Server, type Socket, type AddressInfo } from 'node:net';
import { once } from 'node:events';

/** What becomes of a packet from the client: passed on, or the connection ends before or after it reaches the server; a promise holds it until it resolves. */
export type Fate = 'pass' | 'cut before' | 'cut after' | Promise<void>;

/**
 * - `loses`: nothing arrives any more, and a connection that lost something is silent for ever, as behind a firewall that forgot it. Neither end is told.
 * - `delays`: everything arrives when the partition is over, ends of connections included, as TCP does by sending again.
 */
export type Partition = 'loses' | 'delays';

/** One direction of one connection; what it does comes one after the other. */
class Lane {
  private last: Promise<void> = Promise.resolve();
  isMuted = false;

  then(step: () => void | Promise<void>): void {
    this.last = this.last.then(async () => {
      if (!this.isMuted) await step();
    });
  }
}

export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private partitioned: Partition | undefined;
  private heal: () => void = () => undefined;
  private healed: Promise<void> = Promise.resolve();
  /** Asked about each packet from the client. */
  fateOf: ((packet: Buffer) => Fate) | undefined;
  /** What reaches the client in place of a packet from the server. */
  answerOf: ((packet: Buffer) => Buffer) | undefined;
  /** Added to each packet, in both directions. */
  latencyMs = 0;
  /** New connections are ended at once, as by a server that is not there. */
  isRefusing = false;

  private constructor(private readonly server: Server) {}

  static async to(host: string, port: number): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server);
    server.on('connection', (client) => {
      if (proxy.isRefusing) client.destroy();
      else proxy.join(client, connect(port, host));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** From now until {@link endPartition}. New connections are accepted, and hear nothing. */
  partition(how: Partition): void {
    this.partitioned = how;
    this.healed = new Promise((resolve) => (this.heal = resolve));
  }

  endPartition(): void {
    this.partitioned = undefined;
    this.heal();
  }

  /** Ends all open connections, on both sides. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.fateOf = undefined;
    this.endPartition();
    this.cut();
    this.server.close();
    await once(this.server, 'close');
  }

  private join(client: Socket, server: Socket): void {
    const up = new Lane();
    const down = new Lane();
    const mute = (): void => {
      up.isMuted = true;
      down.isMuted = true;
    };
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
    }
    client.on('data', (packet) => up.then(() => this.carry(mute, () => this.deliver(packet, client, server, mute))));
    server.on('data', (packet) =>
      down.then(() => this.carry(mute, () => void client.write(this.answerOf?.(packet) ?? packet))),
    );
    client.on('close', () => up.then(() => this.carry(mute, () => void server.end())));
    server.on('close', () => down.then(() => this.carry(mute, () => void client.destroy())));
  }

  private async carry(mute: () => void, step: () => void | Promise<void>): Promise<void> {
    if (this.partitioned === 'loses') return mute();
    if (this.partitioned === 'delays') await this.healed;
    if (this.latencyMs > 0) await new Promise((next) => setTimeout(next, this.latencyMs));
    await step();
  }

  private async deliver(packet: Buffer, client: Socket, server: Socket, mute: () => void): Promise<void> {
    const fate = this.fateOf?.(packet) ?? 'pass';
    if (fate === 'cut before' || fate === 'cut after') {
      const cut = (): void => [client, server].forEach((socket) => void socket.destroy());
      mute();
      if (fate === 'cut before') return cut();
      // Its answer says that the server has done it; nobody else will hear it.
      server.once('data', cut);
    }
    if (fate instanceof Promise) await fate;
    server.write(packet);
  }
}
