/// <reference types="node" />

/** The libzmq whose interface and behaviour this package has. */
export const version: string

/** The version of Tautline itself. */
export const tautlineVersion: string

/** What the library can do; absent or false is what it cannot. */
export const capability: Partial<{
  ipc: boolean
  pgm: boolean
  tipc: boolean
  norm: boolean
  curve: boolean
  gssapi: boolean
  draft: boolean
  names: boolean
  tautline: boolean
  tls: boolean
}>

/** A new pair of keys for CURVE, 40 characters of Z85 each. */
export function curveKeyPair(): { publicKey: string; secretKey: string }

/** A part of a received message. Small ones share memory with their neighbours: copy what is to be kept for long. */
export type Message = Buffer

/** What can be sent as a part; numbers as their decimal digits, null as an empty part. */
export type MessageLike = ArrayBufferView | ArrayBuffer | SharedArrayBuffer | string | number | bigint | boolean | null

/** I/O threads, inproc names and limits that sockets share. A program rarely needs another than `context`. */
export class Context {
  constructor(options?: Partial<ContextOptions>)
  protected getBoolOption(option: number): boolean
  protected setBoolOption(option: number, value: boolean): void
  protected getInt32Option(option: number): number
  protected setInt32Option(option: number, value: number): void
}
export interface Context extends ContextOptions {
  /** The most that `maxSockets` can be. */
  readonly maxSocketsLimit: number
}
export interface ContextOptions {
  /** Whether the end of the process waits for queued messages; `false` gives new sockets a linger time of 0. */
  blocky: boolean
  ioThreads: number
  /** The longest message that can be sent, in bytes. */
  maxMessageSize: number
  maxSockets: number
  ipv6: boolean
  threadPriority: number
  threadSchedulingPolicy: number
}

/** The context of sockets that name none. All threads of a process have the same one. */
export const context: Context

/** The exceptions of failed operations. */
export interface ErrnoError extends Error {
  code: string
  errno: number
  /** The endpoint, if there is one to blame. */
  address?: string
}

export interface AuthError extends Error {
  status: 300 | 400 | 500
}

export interface ProtoError extends Error {
  code: `ERR_ZMTP_${string}` | `ERR_ZAP_${string}`
}

type With<T extends string, D = {}> = { type: T } & D
type At = {
  /** What was bound or connected. */
  address: string
} & Ends

/** Both ends of the connection, where there is one. */
type Ends = {
  local?: string
  remote?: string
}

/** What is known of the peer. */
type Known = {
  /** The routing id that it has given itself. */
  routingId?: Buffer
  /** Its address as messages show it. */
  host?: string
  /** What the authentication handler has said it is. */
  userId?: string
}

/** Why, in words. */
type Why = { reason?: string }

/** What a peer has shown whose handshake has failed, and what the authentication handler has said of it. */
type Claimed = { claim?: { mechanism: string; name: Buffer; reason: string } }

/** What happens to a socket's connections. */
export type Event =
  | With<"accept", At>
  | With<"accept:error", At & Why & { error: ErrnoError }>
  | With<"bind", At>
  | With<"bind:error", At & Why & { error: ErrnoError }>
  | With<"connect", At>
  | With<"connect:delay", At>
  | With<"connect:retry", At & Why & { interval: number }>
  | With<"close", At>
  | With<"close:error", At & Why & { error: ErrnoError }>
  | With<"disconnect", At & Known & Why>
  | With<"end">
  | With<"handshake", At & Known>
  | With<"handshake:error:protocol", At & Why & Claimed & { error: ProtoError }>
  | With<"handshake:error:auth", At & Why & Claimed & { error: AuthError }>
  | With<"handshake:error:other", At & Why & Claimed & { error: ErrnoError }>
  | With<"unknown">

export type EventType = Event["type"]
export type EventOfType<E extends EventType = EventType> = Extract<Event, { type: E }>

/** The events of a socket: taken one after the other, or by listeners, not both. */
export class Observer implements AsyncIterable<Event> {
  constructor(socket: Socket)
  readonly closed: boolean
  close(): void
  receive(): Promise<Event>
  on<E extends EventType>(type: E, listener: (event: EventOfType<E>) => void): this
  off<E extends EventType>(type: E, listener: (event: EventOfType<E>) => void): this
  [Symbol.asyncIterator](): AsyncIterator<Event, undefined>
}

/** Passes messages between two sockets in a thread of its own. */
export class Proxy<F extends Socket = Socket, B extends Socket = Socket> {
  constructor(frontEnd: F, backEnd: B)
  readonly frontEnd: F
  readonly backEnd: B
  /** Resolved when the proxy has ended; both sockets are closed then. */
  run(): Promise<void>
  pause(): void
  resume(): void
  terminate(): void
}

/** What a socket has done so far, and what waits in it now. */
export interface Statistics {
  /** Handed to the peers' queues. */
  messagesSent: number
  /** With their frame headers. */
  bytesSent: number
  /** Taken from the peers' queues; up to 1,024 parts of them may wait in the binding. */
  messagesReceived: number
  bytesReceived: number
  /** Not sent because a peer was at its high-water mark (publishers, routers). */
  droppedFull: number
  /** Not sent because nobody has that routing id. */
  droppedUnroutable: number
  /** Queued for peers that have gone for good. */
  lost: number
  queuedOut: number
  queuedIn: number
  /** Connected, or being connected to. */
  peers: number
  /** Peers lost and found again. */
  reconnects: number
  failedConnects: number
  /** Peers that broke off their handshake, or were not let in. */
  failedHandshakes: number
}

/** A peer of a socket, and what has gone to it and come from it. */
export interface Peer {
  /** Names it in the socket, as long as it is there. */
  id: number
  /** Since when the present connection is there, in microseconds since 1970; 0 before the first one, and for inproc. */
  since: number
  messagesSent: number
  /** With their frame headers. */
  bytesSent: number
  messagesReceived: number
  bytesReceived: number
  queuedOut: number
  queuedOutBytes: number
  queuedIn: number
  queuedInBytes: number
  /** Not sent because it was at its high-water mark. */
  dropped: number
  /** How often a message has found the queue to it full. */
  full: number
  /** How often it was lost and found again. */
  reconnects: number
  /** How many microseconds the last heartbeat took there and back; 0 if there was none. */
  roundTrip: number
  state: "connecting" | "connected" | "gone" | "lingering"
  /** This socket has connected to it; else it has come. */
  connectedHere: boolean
  /** Bytes go through shared memory. */
  sharedMemory: boolean
  routingId: Buffer
  /** Its end of the connection; empty for inproc. */
  address: string
  /** Our end. */
  local: string
  /** What was bound or connected here. */
  endpoint: string
  /** What the authentication handler has said it is. */
  userId: string
  host: string
  mechanism: string
}

/** What every socket has. See `zmq_setsockopt(3)` for the options; times are milliseconds, -1 is "for ever" or "the system's". */
export abstract class Socket {
  protected constructor(type: number, options?: {})
  readonly context: Context
  readonly events: Observer
  readonly closed: boolean
  readonly statistics: Statistics
  /** The peers now; one that is still being connected to is among them. */
  readonly peers: Peer[]
  /** Whether a message can be received at once. */
  readonly readable: boolean
  /** Whether a message can be sent at once. */
  readonly writable: boolean

  bind(address: string): Promise<void>
  bindSync(address: string): void
  unbind(address: string): Promise<void>
  unbindSync(address: string): void
  connect(address: string): void
  disconnect(address: string): void
  /**
   * Waits until at least this many peers are connected, for at most `timeout` milliseconds (without it: for ever). Whether they are.
   */
  waitForPeers(count: number, timeout?: number): Promise<boolean>
  /** Pending operations are rejected with EAGAIN; what is queued is sent for at most `linger`. */
  close(): void

  affinity: number
  rate: number
  recoveryInterval: number
  readonly type: number
  linger: number
  reconnectInterval: number
  backlog: number
  reconnectMaxInterval: number
  maxMessageSize: number
  readonly lastEndpoint: string | null
  tcpKeepalive: number
  tcpKeepaliveCount: number
  tcpKeepaliveIdle: number
  tcpKeepaliveInterval: number
  tcpAcceptFilter: string | null
  immediate: boolean
  ipv6: boolean
  readonly securityMechanism: null | "plain" | "curve" | "gssapi"
  plainServer: boolean
  plainUsername: string | null
  plainPassword: string | null
  curveServer: boolean
  curvePublicKey: string | null
  curveSecretKey: string | null
  curveServerKey: string | null
  zapDomain: string | null
  typeOfService: number
  handshakeInterval: number
  socksProxy: string | null
  heartbeatInterval: number
  heartbeatTimeToLive: number
  heartbeatTimeout: number
  connectTimeout: number
  tcpMaxRetransmitTimeout: number
  readonly threadSafe: boolean
  multicastMaxTransportDataUnit: number
  vmciBufferSize: number
  vmciBufferMinSize: number
  vmciBufferMaxSize: number
  vmciConnectTimeout: number
  interface: string | null
  zapEnforceDomain: boolean
  loopbackFastPath: boolean
  /** For tls+tcp and wss: the secret key of `tlsCertificate`, in PEM. Cannot be read. */
  tlsKey: string | Buffer | null
  /** What is shown, in PEM: the certificate, and behind it those that lead from it to one the peers trust. Cannot be read. */
  tlsCertificate: string | Buffer | null
  /** What peers' certificates have to lead to, in PEM. A server that has it asks its clients for certificates. Cannot be read. */
  tlsTrust: string | Buffer | null
  /** The name that the server has to prove, in place of the endpoint's host. Cannot be read. */
  tlsHostname: string | null
  /** What the system trusts is trusted, too. Cannot be read. */
  tlsTrustSystem: boolean

  protected getBoolOption(option: number): boolean
  protected setBoolOption(option: number, value: boolean): void
  protected getInt32Option(option: number): number
  protected setInt32Option(option: number, value: number): void
  protected getUint32Option(option: number): number
  protected setUint32Option(option: number, value: number): void
  protected getInt64Option(option: number): number
  protected setInt64Option(option: number, value: number): void
  protected getUint64Option(option: number): number
  protected setUint64Option(option: number, value: number): void
  protected getStringOption(option: number): string | null
  protected setStringOption(option: number, value: string | Buffer | null): void
}

/** Sockets that send. */
export interface Writable<
  M extends MessageLike | MessageLike[] = MessageLike | MessageLike[],
  O extends [...object[]] = [],
> {
  multicastHops: number
  sendBufferSize: number
  sendHighWaterMark: number
  /** After how long a send that waits for room is rejected with EAGAIN; 0 at once, -1 never. */
  sendTimeout: number
  /**
   * Sends one part or several. The promise is resolved already if there is room, and otherwise when there is. While one send waits,
   * another is rejected with EBUSY.
   */
  send(message: M, ...options: O): Promise<void>
}

/** Sockets that receive. */
export interface Readable<M extends object[] = Message[]> {
  receiveBufferSize: number
  receiveHighWaterMark: number
  /** After how long a receive is rejected with EAGAIN; 0 at once, -1 never. */
  receiveTimeout: number
  /** The parts of the next message. While one receive waits, another is rejected with EBUSY. */
  receive(): Promise<M>
  /** All messages until the socket is closed. */
  [Symbol.asyncIterator](): AsyncIterator<M, undefined>
}

type Same<X, Y, A> = (<T>() => T extends X ? 1 : 2) extends <T>() => T extends Y ? 1 : 2 ? A : never
type Settable<T> = {
  [K in keyof T]-?: T[K] extends Function ? never : Same<{ [Q in K]: T[K] }, { -readonly [Q in K]: T[K] }, K>
}[keyof T]

/** What the constructor of a socket takes: its options, and the context. */
export type SocketOptions<S extends Socket> = Partial<Pick<S, Settable<S>> & { context: Context }>

/** One peer, both ways. */
export class Pair extends Socket {
  constructor(options?: SocketOptions<Pair>)
}
export interface Pair extends Writable, Readable {}

/** Distributes to subscribers; what one has no room for is dropped for that one. */
export class Publisher extends Socket {
  constructor(options?: SocketOptions<Publisher>)
  noDrop: boolean
  conflate: boolean
  invertMatching: boolean
  /**
   * Waits until subscribers have subscribed to at least this many different topics, for at most `timeout` milliseconds (without it: for
   * ever). Whether they have. What is published then reaches them.
   */
  waitForSubscriptions(count: number, timeout?: number): Promise<boolean>
}
export interface Publisher extends Writable {}

/** Receives what it has subscribed to. */
export class Subscriber extends Socket {
  constructor(options?: SocketOptions<Subscriber>)
  conflate: boolean
  invertMatching: boolean
  /** To messages that begin with any of the prefixes; without one, to all. */
  subscribe(...prefixes: Array<Buffer | string>): void
  unsubscribe(...prefixes: Array<Buffer | string>): void
}
export interface Subscriber extends Readable {}

/** Asks, and waits for the answer. */
export class Request extends Socket {
  constructor(options?: SocketOptions<Request>)
  routingId: string | null
  probeRouter: boolean
  correlate: boolean
  relaxed: boolean
}
export interface Request extends Readable, Writable {}

/** Answers. */
export class Reply extends Socket {
  constructor(options?: SocketOptions<Reply>)
  routingId: string | null
}
export interface Reply extends Readable, Writable {}

/** Asks many peers at once. */
export class Dealer extends Socket {
  constructor(options?: SocketOptions<Dealer>)
  routingId: string | null
  probeRouter: boolean
  conflate: boolean
}
export interface Dealer extends Readable, Writable {}

/** Knows each peer by its routing id, the first part of every message. */
export class Router extends Socket {
  constructor(options?: SocketOptions<Router>)
  routingId: string | null
  mandatory: boolean
  probeRouter: boolean
  handover: boolean
  connect(address: string, options?: { routingId?: string }): void
}
export interface Router extends Readable, Writable {}

/** Takes work. */
export class Pull extends Socket {
  constructor(options?: SocketOptions<Pull>)
  conflate: boolean
}
export interface Pull extends Readable {}

/** Hands out work. */
export class Push extends Socket {
  constructor(options?: SocketOptions<Push>)
  conflate: boolean
}
export interface Push extends Writable {}

/** A publisher that receives its subscribers' subscriptions. */
export class XPublisher extends Socket {
  constructor(options?: SocketOptions<XPublisher>)
  noDrop: boolean
  manual: boolean
  welcomeMessage: string | null
  invertMatching: boolean
  set verbosity(value: null | "allSubs" | "allSubsUnsubs")
  /**
   * Waits until subscribers have subscribed to at least this many different topics, for at most `timeout` milliseconds (without it: for
   * ever). Whether they have. What is published then reaches them.
   */
  waitForSubscriptions(count: number, timeout?: number): Promise<boolean>
}
export interface XPublisher extends Readable, Writable {}

/** A subscriber that subscribes by sending. */
export class XSubscriber extends Socket {
  constructor(options?: SocketOptions<XSubscriber>)
}
export interface XSubscriber extends Readable, Writable {}

/** Raw TCP. */
export class Stream extends Socket {
  constructor(options?: SocketOptions<Stream>)
  notify: boolean
  connect(address: string, options?: { routingId?: string }): void
}
export interface Stream extends Readable<[Message, Message]>, Writable<[MessageLike, MessageLike]> {}
