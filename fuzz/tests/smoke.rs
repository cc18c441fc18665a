//! Runs every target that calls functions for a short time.

use tautline_fuzz::tests;

tautline_fuzz::calls!(tests);
