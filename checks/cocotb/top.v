// One wire: the cards of cocotbext-pcie need a simulator to run in, which needs something to simulate.
`timescale 1ns / 1ps
module top (input wire clock);
endmodule
