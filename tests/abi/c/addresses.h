/* Helpers that the parts of the address check share. */
#ifndef ADDRESSES_H
#define ADDRESSES_H

#include <stdio.h>

#include "check.h"

/* Prints that a part is skipped, and the reason. */
void skip(const char *what, const char *reason);
/* Returns ZMQ_LAST_ENDPOINT. The text is valid until the second call after this one. */
const char *last_endpoint(void *socket);
/* Returns a socket with a ZMQ_LINGER of 0. */
void *new_socket(void *context, int type, int ipv6);
/* True if a PULL receives the message that a new PUSH sends to this endpoint. */
int arrives(void *context, void *pull, const char *endpoint, int ipv6);
/* Returns a socket that receives these events of another socket. */
void *monitor(void *context, void *socket, int events);
/* Returns the address of the next event. The text is valid until the next call. */
const char *next_event(void *end, int *event);

/* names.c, files.c, zones.c */
void names(void);
void files(void);
void zones(void);

#endif
