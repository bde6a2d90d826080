// Rules of card/credit_gate.sv: no request is sent without credits, and none that has them is held back.
//
// The credits that are left are counted again here, in numbers that do not wrap.
module credit_gate_rules (
    input logic        clk,
    input logic        rst,
    input logic [7:0]  posted_headers,
    input logic [11:0] posted_data,
    input logic [7:0]  non_posted_headers,
    input logic        is_write,
    input logic [10:0] length,
    input logic        fits,
    input logic        consume,
    input logic        consume_is_write,
    input logic [10:0] consume_length,
    input logic [7:0]  used_posted_headers,
    input logic [11:0] used_posted_data,
    input logic [7:0]  used_non_posted_headers
);
    // Free choice of the solver: the request of this clock is taken.
    logic takes;

    logic [7:0]         last_ph, last_nph;
    logic [11:0]        last_pd;
    logic signed [15:0] after_ph, after_pd, after_nph;
    wire signed [15:0]  ph  = after_ph + $signed({8'd0, posted_headers - last_ph});
    wire signed [15:0]  pd  = after_pd + $signed({4'd0, posted_data - last_pd});
    wire signed [15:0]  nph = after_nph + $signed({8'd0, non_posted_headers - last_nph});

    logic        waits, waits_is_write;
    logic [10:0] waits_length;
    function automatic logic signed [15:0] units(input logic [10:0] dws);
        return $signed(({5'd0, dws} + 16'd3) / 16'd4);
    endfunction

    always_ff @(posedge clk) begin
        last_ph  <= posted_headers;
        last_pd  <= posted_data;
        last_nph <= non_posted_headers;
        if (rst) begin
            after_ph  <= $signed({8'd0, posted_headers});
            after_pd  <= $signed({4'd0, posted_data});
            after_nph <= $signed({8'd0, non_posted_headers});
            waits     <= 1'b0;
        end else begin
            after_ph  <= ph - (consume && consume_is_write ? 16'sd1 : 16'sd0);
            after_pd  <= pd - (consume && consume_is_write ? units(consume_length) : 16'sd0);
            after_nph <= nph - (consume && !consume_is_write ? 16'sd1 : 16'sd0);
            if (takes) begin
                waits          <= 1'b1;
                waits_is_write <= is_write;
                waits_length   <= length;
            end else if (consume) begin
                waits <= 1'b0;
            end
        end
    end

    logic started = 1'b0;
    always_ff @(posedge clk) started <= 1'b1;

    always_comb begin
        assume (started || rst);
        // A receiver never advertises more than 127 unused headers and 2047 unused units (PCI Express Base
        // Specification 5.0, section 2.6.1).
        if (rst) assume (posted_headers < 8'd128 && posted_data < 12'd2048 && non_posted_headers < 8'd128);
        else assume (ph < 16'sd128 && pd < 16'sd2048 && nph < 16'sd128);
        assume (length >= 11'd1 && length <= 11'd1024);
        // The engine takes a request only if it fits. A later one replaces it if a reset has dropped it.
        if (takes) assume (fits && !consume);
        if (consume) assume (waits && consume_is_write == waits_is_write && consume_length == waits_length);
    end

    wire is_enough = is_write ? ph >= 16'sd1 && pd >= units(length) : nph >= 16'sd1;
    // Each rule may use the ones before it. First what the induction needs.
    always_comb if (!rst) begin
        posted_headers_agree: assert (last_ph - used_posted_headers == after_ph[7:0] && after_ph < 16'sd128);
        posted_data_agree: assert (last_pd - used_posted_data == after_pd[11:0] && after_pd < 16'sd2048);
        non_posted_headers_agree: assert (last_nph - used_non_posted_headers == after_nph[7:0] && after_nph < 16'sd128);
        a_taken_request_fits: assert (!waits || waits_length >= 11'd1 && waits_length <= 11'd1024
            && (waits_is_write ? after_ph >= 16'sd1 && after_pd >= units(waits_length) : after_nph >= 16'sd1));
        // What the card relies on.
        posted_headers_suffice: assert (after_ph >= 0);
        posted_data_suffice: assert (after_pd >= 0);
        non_posted_headers_suffice: assert (after_nph >= 0);
        fits_only_with_credits: assert (!fits || is_enough);
        fits_with_credits: assert (fits || !is_enough);
    end
endmodule
bind credit_gate credit_gate_rules rules (.*);
