// One wire: cocotbext-pcie runs in a simulator, which needs a module to simulate.
`timescale 1ns / 1ps
module top (input wire clock);
endmodule
