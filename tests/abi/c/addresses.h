/* Helpers that the parts of the address check share. */
#ifndef ADDRESSES_H
#define ADDRESSES_H

#include <stdio.h>

#include "check.h"

/* Says why something could not be tried here. */
void skip(const char *what, const char *reason);
/* ZMQ_LAST_ENDPOINT; the text stays until the next call but one. */
const char *last_endpoint(void *socket);
/* A socket that does not linger. */
void *new_socket(void *context, int type, int ipv6);
/* True if a PULL receives the message that a new PUSH sends to this endpoint. */
int arrives(void *context, void *pull, const char *endpoint, int ipv6);
/* A socket that is told of these events of another one. */
void *monitor(void *context, void *socket, int events);
/* The address of the next event; the text stays until the next call. */
const char *next_event(void *end, int *event);

/* names.c, files.c, zones.c */
void names(void);
void files(void);
void zones(void);

#endif
