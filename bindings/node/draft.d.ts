import { Message, MessageLike, Readable, Socket, SocketOptions, Writable } from "./index"

export class Server extends Socket {
  constructor(options?: SocketOptions<Server>)
}
export interface Server
  extends Readable<[Message, { routingId: number }]>,
    Writable<MessageLike, [{ routingId: number }]> {}

export class Client extends Socket {
  constructor(options?: SocketOptions<Client>)
}
export interface Client extends Readable<[Message]>, Writable<MessageLike> {}

export class Radio extends Socket {
  constructor(options?: SocketOptions<Radio>)
}
export interface Radio extends Writable<MessageLike, [{ group: Buffer | string }]> {}

export class Dish extends Socket {
  constructor(options?: SocketOptions<Dish>)
  join(...groups: Array<Buffer | string>): void
  leave(...groups: Array<Buffer | string>): void
}
export interface Dish extends Readable<[Message, { group: Buffer }]> {}

export class Gather extends Socket {
  constructor(options?: SocketOptions<Gather>)
  conflate: boolean
}
export interface Gather extends Readable<[Message]> {}

export class Scatter extends Socket {
  constructor(options?: SocketOptions<Scatter>)
  conflate: boolean
}
export interface Scatter extends Writable<MessageLike> {}

export class Datagram extends Socket {
  constructor(options?: SocketOptions<Datagram>)
}
export interface Datagram extends Readable<[Message, Message]>, Writable<[MessageLike, MessageLike]> {}
