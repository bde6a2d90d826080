// The card: registers, 8 KiB of memory behind BAR 0 from 0x4000, and a DMA engine for the lower half of it.
//
// The ports are those of the plain TLP stream; rtl/README.md describes them.
module card #(
    parameter int TAGS = 8
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        flr,

    input  logic [31:0] rx_data,
    input  logic        rx_valid,
    input  logic        rx_last,
    input  logic [2:0]  rx_bar,
    output logic        rx_ready,

    output logic [31:0] tx_data,
    output logic        tx_valid,
    output logic        tx_last,
    input  logic        tx_ready,

    input  logic [7:0]  credit_posted_headers,
    input  logic [11:0] credit_posted_data,
    input  logic [7:0]  credit_non_posted_headers,

    input  logic [15:0] requester_id,
    input  logic [12:0] mps,
    input  logic [12:0] mrrs,
    input  logic [10:0] tags,
    input  logic        bus_master,
    input  logic [31:0] timeout_clocks,
    input  logic        msi_enable,
    input  logic [63:0] msi_address,
    input  logic [31:0] msi_data
);
    localparam int BITS = 13;

    logic check, is_write, is_read, is_completion, has_data, poisoned, short_of_data;
    logic [10:0] length, data_index;
    logic [31:0] dw0, dw1, dw2, address, data;
    logic data_valid, data_end, malformed, read_valid, read_ready;
    // A store waits for the completion of the load before it: both use one port of the memory.
    wire hold_write = !read_ready;
    tlp_rx u_rx (.*);

    // Stores of the BAR.
    wire [15:0] store_address = {address[15:2], 2'b00} + {3'b000, data_index, 2'b00};
    wire [3:0]  store_enable  = data_index == 0 ? dw1[3:0]
                              : data_index + 11'd1 == length ? dw1[7:4] : 4'b1111;
    wire is_store   = data_valid && is_write && !poisoned && rx_bar == 3'd0;
    wire in_memory  = store_address[15:13] == 3'b010;
    wire in_registers = store_address[15:6] == 10'd0;
    wire [BITS-1:0] window_store = store_address[12:0];

    logic [15:0] load_address;
    logic [31:0] register_data, memory_data, load_data;
    logic        load_in_memory, load_hold;
    logic [31:0] register_read;
    always_ff @(posedge clk) if (!load_hold) begin
        load_in_memory <= load_address[15:13] == 3'b010;
        register_read  <= load_address[15:6] == 10'd0 ? register_data : '0;
    end
    assign load_data = load_in_memory ? memory_data : register_read;

    logic [31:0] completion_data;
    logic completion_valid, completion_last, completion_ready, completion_granted, load_beat;
    completer u_completer (
        .clk, .rst, .flr, .completer_id(requester_id), .read_valid, .read_ready, .dw0, .dw1,
        .request_address(address), .length, .read_address(load_address), .read_hold(load_hold),
        .read_data(load_data), .beat(load_beat),
        .tx_data(completion_data), .tx_valid(completion_valid), .tx_last(completion_last),
        .tx_ready(completion_ready), .tx_granted(completion_granted)
    );

    logic [63:0] source, destination;
    logic [31:0] count;
    logic start, running, failed, unexpected;
    logic [2:0] command;
    logic [3:0] dma_write;
    logic beat;
    registers u_registers (
        .clk, .rst(rst || flr), .write(is_store && in_registers), .write_address(store_address[5:0]),
        .write_enable(store_enable), .write_data(data), .read_address(load_address[5:0]),
        .read_data(register_data), .source, .destination, .count, .start, .command, .running, .failed,
        .unexpected, .beat_written(dma_write != 0 || is_store && in_memory),
        .beat_read(beat || load_beat && load_in_memory)
    );

    logic request, request_is_write, is_msi, fits, builder_idle, has_free, allocate, any_busy, failure;
    logic [63:0] request_address;
    logic [12:0] request_bytes;
    logic [10:0] request_length;
    logic [BITS-1:0] own;
    dma_engine #(.BITS(BITS)) u_engine (
        .clk, .rst, .flr, .bus_master, .mps, .mrrs, .start, .command, .source, .destination, .count, .running,
        .failed, .msi_enable, .msi_address, .request, .is_write(request_is_write), .is_msi,
        .address(request_address), .bytes(request_bytes), .length(request_length), .own, .fits, .builder_idle,
        .has_free, .allocate, .any_busy, .failure
    );

    logic [$clog2(TAGS)-1:0] free_tag;
    logic [BITS-1:0] dma_address;
    tag_table #(.TAGS(TAGS), .BITS(BITS)) u_tags (
        .clk, .rst, .flr, .requester_id, .timeout_clocks, .has_free, .free_tag, .allocate,
        .new_lower(request_address[6:0]), .new_bytes(request_bytes), .new_own(own), .check, .is_completion,
        .has_data, .poisoned, .short_of_data, .length, .dw0, .dw1, .dw2, .data_valid, .data_index, .data_end,
        .malformed, .write_address(dma_address), .write_enable(dma_write), .any_busy, .failure, .unexpected
    );

    logic started, started_is_write;
    logic [10:0] started_length;
    logic [BITS-1:0] builder_address;
    logic [31:0] builder_data, request_data;
    logic builder_hold;
    logic request_valid, request_last, request_ready, request_granted;
    request_builder #(.BITS(BITS)) u_builder (
        .clk, .rst, .flr, .requester_id, .start(request), .is_write(request_is_write), .is_msi,
        .address(request_address), .bytes(request_bytes), .tag(10'(free_tag)), .own, .msi_data,
        .idle(builder_idle), .started, .started_is_write, .started_length, .beat, .read_address(builder_address), .read_hold(builder_hold),
        .read_data(builder_data), .tx_data(request_data), .tx_valid(request_valid), .tx_last(request_last),
        .tx_ready(request_ready), .tx_granted(request_granted)
    );

    credit_gate u_credits (
        .clk, .rst, .posted_headers(credit_posted_headers), .posted_data(credit_posted_data),
        .non_posted_headers(credit_non_posted_headers), .is_write(request_is_write), .length(request_length),
        .fits, .consume(started), .consume_is_write(started_is_write), .consume_length(started_length)
    );

    // The engine writes data of completions or reads data of writes; the BAR has the other port.
    wire [BITS-1:0] a_address = dma_write != 0 ? dma_address : builder_address;
    wire [BITS-1:0] b_address = is_store && in_memory ? window_store : load_address[12:0];
    sram #(.BITS(BITS)) u_sram (
        .clk, .a_address, .a_write(dma_write), .a_data(data), .a_hold(builder_hold), .a_read(builder_data), .b_address,
        .b_write(is_store && in_memory ? store_enable : 4'b0000), .b_data(data), .b_hold(load_hold),
        .b_read(memory_data)
    );

    tx_arbiter u_arbiter (.*);

    a_tags_enabled: assert property (@(posedge clk) disable iff (rst) bus_master |-> tags >= 11'(TAGS));
endmodule
