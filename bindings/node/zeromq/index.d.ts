/** The library that is loaded; undefined if `zeromq` runs on its own libzmq. */
export const library: string | undefined

/** Whether `zeromq`, the module that is given, runs on Tautline: one of its sockets is asked. */
export function active(zeromq: object): boolean
