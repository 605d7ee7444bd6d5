// A TCP proxy between a data source and its server, which can swallow everything or cut what is open.
import { createServer, connect, type Server, type Socket, type AddressInfo } from 'node:net';
import { once } from 'node:events';

export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private isSwallowing = false;
  /** Called with each packet from the client; answering true cuts the connection after the packet was passed on, so that no answer comes back. */
  cutAfter: ((packet: Buffer) => boolean) | undefined;

  private constructor(private readonly server: Server) {}

  static async to(host: string, port: number): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server);
    server.on('connection', (client) => proxy.join(client, connect(port, host)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Packets vanish, sockets stay open: a network partition as both ends see it. */
  swallow(isSwallowing: boolean): void {
    this.isSwallowing = isSwallowing;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    this.server.close();
    await once(this.server, 'close');
  }

  private join(client: Socket, server: Socket): void {
    let isMuted = false;
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
    }
    client.on('data', (packet) => {
      if (this.isSwallowing) return;
      if (this.cutAfter?.(packet)) {
        isMuted = true;
        // The server has to have read it before its socket is closed.
        server.write(packet, () => setTimeout(() => client.destroy(), 50));
        return;
      }
      server.write(packet);
    });
    server.on('data', (packet) => {
      if (!this.isSwallowing && !isMuted) client.write(packet);
    });
    client.on('close', () => server.end());
    server.on('close', () => client.destroy());
  }
}
