/** Path of the loaded library; undefined if `zeromq` runs on its own libzmq. */
export const library: string | undefined

/** Returns true if the given module `zeromq` runs on Tautline. Queries an option of one of its sockets. */
export function active(zeromq: object): boolean
