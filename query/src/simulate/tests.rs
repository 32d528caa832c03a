//! Simulations of small sessions: what is in force is what is, and the figures add up.

use super::*;
