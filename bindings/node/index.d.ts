/// <reference types="node" />

/** The version of libzmq whose interface and behaviour this package implements. */
export const version: string

/** The version of Tautline itself. */
export const tautlineVersion: string

/** The capabilities of the library; an absent or false entry is not supported. */
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

/**
 * Returns a buffer in memory that ipc peers of the same user can read in place. Its bytes are those of older messages or zeroes: write
 * all of them, then send the buffer. The body is not copied, and the buffer is empty afterwards. Below 64 KiB and above 1 GiB, and where
 * JavaScript allows no memory from outside V8, the result is an ordinary buffer.
 */
export function loan(size: number): Buffer

/** A part of a received message. Small parts share memory with their neighbours: copy a part that you keep for long. */
export type Message = Buffer

/** A value that can be sent as a part. Numbers are sent as decimal digits, null as an empty part. */
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
  /** Upper limit for `maxSockets`. */
  readonly maxSocketsLimit: number
}
export interface ContextOptions {
  /** True if the process waits for queued messages before it exits; `false` gives new sockets a linger time of 0. */
  blocky: boolean
  ioThreads: number
  /** The longest message that can be sent, in bytes. */
  maxMessageSize: number
  maxSockets: number
  ipv6: boolean
  threadPriority: number
  threadSchedulingPolicy: number
}

/** The default context of sockets, shared by all threads of a process. */
export const context: Context

/** The exceptions of failed operations. */
export interface ErrnoError extends Error {
  code: string
  errno: number
  /** The endpoint that the error concerns, if any. */
  address?: string
}

export interface AuthError extends Error {
  status: 300 | 400 | 500
}

export interface ProtoError extends Error {
  code: `ERR_ZMTP_${string}` | `ERR_ZAP_${string}`
}

type EventBase<T extends string, D = {}> = { type: T } & D
type WithAddress = {
  /** The bound or connected endpoint. */
  address: string
} & WithEndpoints

/** Both ends of the connection, if there is one. */
type WithEndpoints = {
  local?: string
  remote?: string
}

/** The known parts of the peer's identity. */
type WithPeerIdentity = {
  /** The routing id that the peer has set for itself. */
  routingId?: Buffer
  /** The peer's address (`Peer-Address` of its messages). */
  peerAddress?: string
  /** User id that the authentication handler assigned to the peer. */
  userId?: string
}

/** The reason in words. */
type WithReason = { reason?: string }

type WithClaim = {
  /** The credentials of a peer whose handshake has failed: its public key or user name. */
  claim?: { mechanism: string; credential: Buffer }
  /** The answer of the authentication handler that refused the peer. */
  refusalReason?: string
}

/** Events of a socket's connections. */
export type Event =
  | EventBase<"accept", WithAddress>
  | EventBase<"accept:error", WithAddress & WithReason & { error: ErrnoError }>
  | EventBase<"bind", WithAddress>
  | EventBase<"bind:error", WithAddress & WithReason & { error: ErrnoError }>
  | EventBase<"connect", WithAddress>
  | EventBase<"connect:delay", WithAddress>
  | EventBase<"connect:retry", WithAddress & WithReason & { interval: number }>
  | EventBase<"close", WithAddress>
  | EventBase<"close:error", WithAddress & WithReason & { error: ErrnoError }>
  | EventBase<"disconnect", WithAddress & WithPeerIdentity & WithReason>
  | EventBase<"end">
  | EventBase<"handshake", WithAddress & WithPeerIdentity>
  | EventBase<"handshake:error:protocol", WithAddress & WithReason & WithClaim & { error: ProtoError }>
  | EventBase<"handshake:error:auth", WithAddress & WithReason & WithClaim & { error: AuthError }>
  | EventBase<"handshake:error:other", WithAddress & WithReason & WithClaim & { error: ErrnoError }>
  | EventBase<"unknown">

export type EventType = Event["type"]
export type EventOfType<E extends EventType = EventType> = Extract<Event, { type: E }>

/** The events of a socket. Receive them one by one, or use listeners, but not both. */
export class Observer implements AsyncIterable<Event> {
  constructor(socket: Socket)
  readonly closed: boolean
  close(): void
  receive(): Promise<Event>
  on<E extends EventType>(type: E, listener: (event: EventOfType<E>) => void): this
  off<E extends EventType>(type: E, listener: (event: EventOfType<E>) => void): this
  [Symbol.asyncIterator](): AsyncIterator<Event, undefined>
}

/** Forwards messages between two sockets in a separate thread. */
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

/** Counters of a socket, and the number of messages queued now. */
export interface Statistics {
  /** Messages put into the peers' queues. */
  messagesSent: number
  /** Including frame headers. */
  bytesSent: number
  /** Messages taken from the peers' queues. Up to 1,024 of their parts may be waiting in the binding. */
  messagesReceived: number
  bytesReceived: number
  /** Messages dropped because a peer was at its high-water mark (publishers, routers). */
  droppedFull: number
  /** Messages dropped because no peer has that routing id. */
  droppedUnroutable: number
  /** Messages that were queued for peers that will not reconnect. */
  lostMessages: number
  queuedOut: number
  queuedIn: number
  /** Peers that are connected or being connected to. */
  peers: number
  /** Number of reconnects. */
  reconnects: number
  failedConnects: number
  /** Handshakes that the peer aborted or that were refused. */
  failedHandshakes: number
}

/** A peer of a socket, with its traffic counters. */
export interface Peer {
  /** Identifies the peer within the socket while the peer exists. */
  id: number
  /** Start of the current connection; null before the first connection, and for inproc. */
  connectedSince: Date | null
  messagesSent: number
  /** Including frame headers. */
  bytesSent: number
  messagesReceived: number
  bytesReceived: number
  queuedOut: number
  queuedOutBytes: number
  queuedIn: number
  queuedInBytes: number
  /** Messages dropped because the peer was at its high-water mark. */
  droppedFull: number
  /** Number of messages that found the peer's queue full. */
  queueFullCount: number
  /** Number of reconnects to the peer. */
  reconnects: number
  /** Round-trip time of the last heartbeat in microseconds; 0 without heartbeats. */
  roundTripMicros: number
  /** `closed`: the peer will not reconnect, and its messages may still be received. `lingering`: the socket is closed and still sends. */
  state: "connecting" | "connected" | "closed" | "lingering"
  /** True if this socket connected to the peer, false if the peer connected to this socket. */
  isOutgoing: boolean
  /** True if bytes go through shared memory. */
  usesSharedMemory: boolean
  routingId: Buffer
  /** The peer's end of the connection; empty for inproc. */
  remote: string
  /** Our end of the connection. */
  local: string
  /** The endpoint that was bound or connected on this side. */
  endpoint: string
  /** User id that the authentication handler assigned to the peer. */
  userId: string
  /** The peer's address (`Peer-Address` of its messages). */
  peerAddress: string
  mechanism: string
}

/** Base class of all sockets. See `zmq_setsockopt(3)` for the options. Times are milliseconds; -1 is infinite or the system's default. */
export abstract class Socket {
  protected constructor(type: number, options?: {})
  readonly context: Context
  readonly events: Observer
  readonly closed: boolean
  readonly statistics: Statistics
  /** The current peers, including peers that are still being connected to. */
  readonly peers: Peer[]
  /** True if a message can be received immediately. */
  readonly readable: boolean
  /** True if a message can be sent immediately. */
  readonly writable: boolean

  bind(address: string): Promise<void>
  bindSync(address: string): void
  unbind(address: string): Promise<void>
  unbindSync(address: string): void
  connect(address: string): void
  disconnect(address: string): void
  /**
   * Waits until at least `count` peers are connected, for at most `timeoutMs` milliseconds (default: no limit). The result is true if
   * they are.
   */
  waitForPeers(count: number, timeoutMs?: number): Promise<boolean>
  /** Closes the socket. Pending operations are rejected with EAGAIN; queued messages are sent for at most `linger`. */
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
  /** The certificate chain in PEM: our certificate, then the intermediate ones up to one that the peers trust. Cannot be read. */
  tlsCertificate: string | Buffer | null
  /** Trusted CA certificates in PEM. If set on a server, clients must present a certificate. Cannot be read. */
  tlsTrust: string | Buffer | null
  /** The name that the server's certificate must have, instead of the endpoint's host. Cannot be read. */
  tlsHostname: string | null
  /** True to trust the system's CA certificates in addition. Cannot be read. */
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
  /** Time in milliseconds after which a send that waits for room is rejected with EAGAIN; 0 is immediately, -1 never. */
  sendTimeout: number
  /**
   * Sends one part or several. If there is room, the returned promise is already resolved; otherwise it resolves when there is room.
   * While one send waits, another is rejected with EBUSY. The sent bytes may change after the promise is resolved. Sending empties
   * buffers of `loan`.
   */
  send(message: M, ...options: O): Promise<void>
}

/** Sockets that receive. */
export interface Readable<M extends object[] = Message[]> {
  receiveBufferSize: number
  receiveHighWaterMark: number
  /** Time in milliseconds after which a receive is rejected with EAGAIN; 0 is immediately, -1 never. */
  receiveTimeout: number
  /** Returns the parts of the next message. While one receive waits, another is rejected with EBUSY. */
  receive(): Promise<M>
  /** Returns all messages until the socket is closed. */
  [Symbol.asyncIterator](): AsyncIterator<M, undefined>
}

type IfEquals<X, Y, A> = (<T>() => T extends X ? 1 : 2) extends <T>() => T extends Y ? 1 : 2 ? A : never
type WritableKeys<T> = {
  [K in keyof T]-?: T[K] extends Function ? never : IfEquals<{ [Q in K]: T[K] }, { -readonly [Q in K]: T[K] }, K>
}[keyof T]

/** Arguments of a socket's constructor: its options and the context. */
export type SocketOptions<S extends Socket> = Partial<Pick<S, WritableKeys<S>> & { context: Context }>

/** Exchanges messages with one peer in both directions. */
export class Pair extends Socket {
  constructor(options?: SocketOptions<Pair>)
}
export interface Pair extends Writable, Readable {}

/** Sends messages to all subscribers. If a subscriber's queue is full, the message is dropped for that subscriber. */
export class Publisher extends Socket {
  constructor(options?: SocketOptions<Publisher>)
  noDrop: boolean
  conflate: boolean
  invertMatching: boolean
  /**
   * Waits until subscribers have subscribed to at least `count` different topics, for at most `timeoutMs` milliseconds (default:
   * no limit).
   * True if they have. Messages published afterwards reach them.
   */
  waitForSubscriptions(count: number, timeoutMs?: number): Promise<boolean>
}
export interface Publisher extends Writable {}

/** Receives the messages that it has subscribed to. */
export class Subscriber extends Socket {
  constructor(options?: SocketOptions<Subscriber>)
  conflate: boolean
  invertMatching: boolean
  /** Subscribes to messages that begin with any of the prefixes; without a prefix, to all messages. */
  subscribe(...prefixes: Array<Buffer | string>): void
  unsubscribe(...prefixes: Array<Buffer | string>): void
}
export interface Subscriber extends Readable {}

/** Sends a request and waits for the reply. */
export class Request extends Socket {
  constructor(options?: SocketOptions<Request>)
  routingId: string | null
  probeRouter: boolean
  correlate: boolean
  relaxed: boolean
}
export interface Request extends Readable, Writable {}

/** Receives requests and sends replies. */
export class Reply extends Socket {
  constructor(options?: SocketOptions<Reply>)
  routingId: string | null
}
export interface Reply extends Readable, Writable {}

/** Sends requests to many peers without waiting for replies. */
export class Dealer extends Socket {
  constructor(options?: SocketOptions<Dealer>)
  routingId: string | null
  probeRouter: boolean
  conflate: boolean
}
export interface Dealer extends Readable, Writable {}

/** Addresses each peer by its routing id, the first part of every message. */
export class Router extends Socket {
  constructor(options?: SocketOptions<Router>)
  routingId: string | null
  mandatory: boolean
  probeRouter: boolean
  handover: boolean
  connect(address: string, options?: { routingId?: string }): void
}
export interface Router extends Readable, Writable {}

/** Receives messages that Push sockets distribute. */
export class Pull extends Socket {
  constructor(options?: SocketOptions<Pull>)
  conflate: boolean
}
export interface Pull extends Readable {}

/** Distributes messages among its peers in turn. */
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
   * Waits until subscribers have subscribed to at least `count` different topics, for at most `timeoutMs` milliseconds (default:
   * no limit).
   * True if they have. Messages published afterwards reach them.
   */
  waitForSubscriptions(count: number, timeoutMs?: number): Promise<boolean>
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
