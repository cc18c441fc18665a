//! Runs every target that uses live sockets for a short time. These targets measure the memory of
//! their process, so they have a process of their own.

use tautline_fuzz::tests;

tautline_fuzz::talks!(tests);
