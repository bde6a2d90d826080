// Rules of card/tx_arbiter.sv: an offered DW stays, TLPs are sent whole, and nothing is lost or sent twice.
module tx_arbiter_rules (
    input logic        clk,
    input logic        rst,
    input logic [31:0] completion_data,
    input logic        completion_valid,
    input logic        completion_last,
    input logic        completion_ready,
    input logic        completion_granted,
    input logic [31:0] request_data,
    input logic        request_valid,
    input logic        request_last,
    input logic        request_ready,
    input logic        request_granted,
    input logic [31:0] tx_data,
    input logic        tx_valid,
    input logic        tx_last,
    input logic        tx_ready,
    input logic        locked,
    input logic        holds_request
);
    wire completion_sent = completion_valid && completion_ready;
    wire request_sent    = request_valid && request_ready;
    wire is_whole        = completion_sent ? completion_last : request_last;

    // A TLP has begun and not ended, or its first DW has been offered.
    logic begun, begun_request;
    logic offered, offered_request;
    always_ff @(posedge clk) begin
        if (rst) begin
            begun  <= 1'b0;
            offered <= 1'b0;
        end else begin
            if (completion_sent || request_sent) begin
                begun         <= !is_whole;
                begun_request <= request_sent;
            end
            offered         <= (completion_granted || request_granted) && !tx_ready;
            offered_request <= request_granted;
        end
    end

    logic started = 1'b0;
    // The last clock: a DW of the arbiter, of the completer or of the builder has waited.
    logic        waited, completion_waited, request_waited;
    logic [32:0] tx_then, completion_then, request_then;
    wire [32:0]  tx_now         = {tx_last, tx_data};
    wire [32:0]  completion_now = {completion_last, completion_data};
    wire [32:0]  request_now    = {request_last, request_data};
    always_ff @(posedge clk) begin
        started           <= 1'b1;
        waited            <= !rst && tx_valid && !tx_ready;
        completion_waited <= !rst && completion_granted && !completion_ready;
        request_waited    <= !rst && request_granted && !request_ready;
        tx_then           <= tx_now;
        completion_then   <= completion_now;
        request_then      <= request_now;
    end

    always_comb begin
        assume (started || rst);
        // A sender keeps a DW that is granted and not yet taken: tlp_stream.sv proves it of both senders.
        if (!rst && completion_waited) assume (completion_valid && completion_now == completion_then);
        if (!rst && request_waited) assume (request_valid && request_now == request_then);
    end

    // Each rule may use the ones before it. First what the induction needs.
    always_comb if (!rst) begin
        a_begun_tlp_locks: assert ((!begun || locked && holds_request == begun_request)
            && (!offered || locked && holds_request == offered_request) && (locked == (begun || offered)));
        // What the card relies on.
        an_offered_dw_stays: assert (!waited || tx_valid && tx_now == tx_then);
        a_tlp_is_whole: assert (!begun || !(begun_request ? completion_sent : request_sent));
        a_grant_lasts: assert ((!completion_waited || completion_granted) && (!request_waited || request_granted)
            && (!begun || (begun_request ? request_granted || !request_valid : completion_granted || !completion_valid)));
        only_a_granted_dw_is_taken: assert ((!completion_sent || completion_granted)
            && (!request_sent || request_granted));
        one_dw_a_clock: assert (!(completion_sent && request_sent));
        nothing_is_lost: assert ((tx_valid && tx_ready) == (completion_sent || request_sent));
        the_dw_is_unchanged: assert (!tx_valid || !tx_ready
            || tx_now == (completion_sent ? completion_now : request_now));
        completions_are_first: assert (begun || offered || !completion_valid || completion_granted);
        tx_is_valid_if_a_sender_is: assert (tx_valid || !(begun ? (begun_request ? request_valid : completion_valid)
                                                               : completion_valid || request_valid));
        a_granted_dw_is_offered: assert (tx_valid == (completion_granted || request_granted)
            && !(completion_granted && request_granted) && (!request_granted || tx_now == request_now)
            && (!completion_granted || tx_now == completion_now));
    end
endmodule
bind tx_arbiter tx_arbiter_rules rules (.*);
