/*
 * zmq_utils.h - deprecated; its declarations live in zmq.h.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef __ZMQ_UTILS_H_INCLUDED__
#define __ZMQ_UTILS_H_INCLUDED__

#include "zmq.h"

#endif /* __ZMQ_UTILS_H_INCLUDED__ */
