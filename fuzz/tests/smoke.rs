//! Every target that calls functions, for a moment.

use tautline_fuzz::tests;

tautline_fuzz::calls!(tests);
