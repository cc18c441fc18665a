//! Every target that talks to living sockets, for a moment. They count what a process takes: this is
//! one of their own.

use tautline_fuzz::tests;

tautline_fuzz::talks!(tests);
